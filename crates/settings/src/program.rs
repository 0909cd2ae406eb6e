//! What programs that the gateway runs are given: their environment and their user.

use crate::Faults;
use crate::read::Values;
use suimon_params::pool::User;

/// The `PATH` of programs where the gateway has none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the environment that `environment` says, beside the gateway's `PATH` and one more variable,
/// either of which it may override.
pub(crate) fn environment(values: &Values, more: Option<(&str, &str)>) -> Vec<(String, String)> {
    let mut environment =
        vec![("PATH".to_owned(), std::env::var("PATH").unwrap_or_else(|_| PATH.to_owned()))];
    environment.extend(more.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for entry in values.texts("environment") {
        let (name, value) = entry.split_once('=').expect("the schema takes nothing else");
        environment.retain(|(other, _)| other != name);
        environment.push((name.to_owned(), value.to_owned()));
    }
    environment
}

/// Returns the user of this name, which the setting `key` has, and notes that there is none.
pub(crate) fn user(key: &str, name: &str, faults: &mut Faults) -> Option<User> {
    match suimon_process::find_user(name) {
        Ok(Some(rights)) => Some(User { id: rights.user, group: rights.group, groups: rights.groups }),
        Ok(None) => {
            faults.value(key, format!("{name:?}"), "a user of this machine");
            None
        }
        Err(error) => {
            let allowed = format!("a user of this machine, and whether it is cannot be found out: {error}");
            faults.value(key, format!("{name:?}"), allowed);
            None
        }
    }
}
