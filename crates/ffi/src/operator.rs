//! The admin listener, as `suimon serve` has it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use suimon_admin::{
    Access, AccessParams, AdminListener, Beside, Params, Tls, TlsFiles, UnixBeside, Watch, sites_of,
};
use suimon_proxy::Observer;
use suimon_settings::{MAIN_SITE, Settings};
use tokio::net::TcpListener;

/// What shows the gateway, and the listener, if there is one.
pub(crate) struct Operator {
    pub(crate) watch: Watch,
    pub(crate) listener: Option<AdminListener>,
    /// Where it really is.
    pub(crate) address: Option<String>,
}

impl Operator {
    /// Binds the listener that the settings name.
    pub(crate) async fn bind(
        settings: &Settings,
        observer: &Observer,
        draining: &Arc<AtomicBool>,
    ) -> Result<Operator, String> {
        let admin = &settings.admin_access;
        let access = Access::load(AccessParams {
            token_file: admin.token_file.clone(),
            public: admin.public.clone(),
            trusts_loopback: !admin.asks(),
        })?;
        let files =
            admin.tls.clone().map(|tls| TlsFiles { cert: tls.cert, key: tls.key, client_ca: tls.client_ca });
        let tls = files.map(Tls::load).transpose()?.map(Arc::new);
        let listener = match (&admin.socket, settings.admin_listen) {
            (Some(path), _) => {
                let bound = UnixBeside::bind(path, false).and_then(UnixBeside::put_in_place);
                Some(bound.map_err(|error| format!("admin.listen: unix:{}: {error}", path.display()))?)
            }
            (None, Some(address)) => {
                let bound = TcpListener::bind(address).await;
                let bound = bound.map_err(|error| {
                    format!("admin.listen: {address}: {error}; name another address, or \"off\"")
                })?;
                Some(match tls {
                    None => bound.into(),
                    Some(tls) => AdminListener::with_tls(bound, tls),
                })
            }
            (None, None) => None,
        };
        let address = listener.as_ref().map(|listener| named(listener, admin.socket.as_ref()));
        let params = Params {
            hosts: settings.admin_hosts.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            access: Arc::new(access),
        };
        let beside: Arc<dyn Beside> = Arc::new(());
        let sites = sites_of(observer, MAIN_SITE, draining, &beside);
        let watch = Watch::new(params, sites).map_err(|error| error.to_string())?;
        Ok(Operator { watch, listener, address })
    }
}

fn named(listener: &AdminListener, socket: Option<&PathBuf>) -> String {
    match (socket, listener.address()) {
        (Some(path), _) => format!("unix:{}", path.display()),
        (None, Some(address)) => address.to_string(),
        (None, None) => String::new(),
    }
}
