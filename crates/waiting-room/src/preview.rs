//! Every state of the waiting room, to be looked at.

use super::error::{BrowserPreferences, ErrorDetails, ErrorTopic};
use super::look::{Appearance, read_template};
use super::notice::{NoticeState, WaitNotice};
use super::page::{Form, PageDetails, Pages};
use std::fmt::Write as _;
use suimon_params::WaitingRoomParams;

/// Answers the page's script in place of a gateway: what the page was written with.
const STUB: &str =
    "<script>fetch=async()=>({ok:false,status:503,headers:new Headers,json:async()=>(TWIN)});</script>\n";

/// Returns the pages of a waiting room by the names of their files; the first lists the others.
///
/// # Errors
/// If the template cannot be read.
pub fn preview(params: &WaitingRoomParams) -> Result<Vec<(String, String)>, String> {
    let mut look = Appearance::of(params, read_template(params)?);
    if look.name.is_empty() {
        "Riverside Tickets".clone_into(&mut look.name);
    }
    let pages = Pages::new(&look, true);
    let form = Form {
        fields: vec![("name".to_owned(), "A. Kimura".to_owned()), ("seats".to_owned(), "2".to_owned())],
    };
    let mut out = vec![(String::from("index.html"), String::new())];
    let mut index = String::from(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>The waiting room</title><style>:root{color-scheme:light dark}body{font:1rem/1.6 system-ui;margin:1rem}h2{font-size:1rem;margin:1rem 0 0}a{display:inline-block;padding:.25rem .4rem}</style><main><h1>The waiting room</h1>",
    );
    for (name, notice, extras) in examples(&form) {
        let mut notice = notice;
        notice.message.clone_from(&params.message);
        let _ = write!(index, "<h2>{name}</h2>");
        for (language, tag) in pages.tags().iter().enumerate() {
            let page = pages.render(language, &notice, &extras);
            let stub = STUB.replace("TWIN", &notice.json().replace('<', "\\u003c"));
            let page = page.replacen("<script type=json", &format!("{stub}<script type=json"), 1);
            let _ = write!(index, "<a href={name}.{tag}.html lang={tag}>{tag}</a> ");
            out.push((format!("{name}.{tag}.html"), page));
        }
    }
    for trouble in ErrorTopic::ALL {
        let name = format!("error-{}", trouble.key());
        let _ = write!(index, "<h2>{name}</h2>");
        for tag in pages.tags() {
            let retry_seconds =
                matches!(trouble, ErrorTopic::Busy | ErrorTopic::Restart | ErrorTopic::Away).then_some(5);
            let particulars = ErrorDetails { code: "example", retry_seconds, may_reload: true };
            let page = pages.error(&BrowserPreferences::language(tag), trouble, &particulars);
            let _ = write!(index, "<a href={name}.{tag}.html lang={tag}>{tag}</a> ");
            out.push((format!("{name}.{tag}.html"), page.text));
        }
    }
    index.push_str("</main>\n");
    out[0].1 = index;
    Ok(out)
}

fn examples(form: &Form) -> Vec<(&'static str, WaitNotice, PageDetails<'_>)> {
    let notice = |state| WaitNotice {
        state,
        position: Some(1310),
        ahead: None,
        eta: None,
        is_slower: false,
        poll_after: 12,
        updated_at: 1_793_887_402,
        opens_at: None,
        expires_at: None,
        pass_url: None,
        message: String::new(),
    };
    let waiting = || WaitNotice { ahead: Some(1204), eta: Some((372, 538)), ..notice(NoticeState::Waiting) };
    let extras = |progress| PageDetails {
        url: "/concerts/42?seats=2",
        progress,
        refresh: true,
        ..PageDetails::default()
    };
    let seed_hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    vec![
        ("waiting", waiting(), extras(38)),
        ("soon", WaitNotice { ahead: Some(4), eta: Some((5, 18)), ..notice(NoticeState::Soon) }, extras(97)),
        ("next", WaitNotice { ahead: Some(2), eta: Some((20, 75)), ..notice(NoticeState::Next) }, extras(95)),
        ("your_turn", notice(NoticeState::YourTurn), extras(100)),
        ("paused", WaitNotice { ahead: Some(1204), ..notice(NoticeState::Paused) }, extras(38)),
        (
            "application_down",
            WaitNotice { ahead: Some(1204), ..notice(NoticeState::ApplicationDown) },
            extras(38),
        ),
        ("closed", notice(NoticeState::Closed), extras(0)),
        (
            "opening",
            WaitNotice { opens_at: Some(1_793_952_000), ..notice(NoticeState::Opening) },
            PageDetails { seed_hash, ..extras(0) },
        ),
        (
            "full",
            WaitNotice { poll_after: 30, ..notice(NoticeState::Full) },
            PageDetails { retry_after: 30, ..extras(0) },
        ),
        (
            "pass",
            WaitNotice { pass_url: Some("/human?back=%2F".to_owned()), ..notice(NoticeState::Pass) },
            extras(0),
        ),
        (
            "waiting-slower",
            WaitNotice { eta: Some((1320, 2050)), is_slower: true, ..waiting() },
            PageDetails { refresh: false, ..extras(31) },
        ),
        (
            "waiting-hours",
            WaitNotice { ahead: Some(184_211), eta: Some((8200, 11_900)), ..waiting() },
            PageDetails { device_code: "K7M-2QX", ..extras(4) },
        ),
        ("waiting-post", waiting(), PageDetails { form: Some(form), ..extras(38) }),
        (
            "next-post",
            WaitNotice { ahead: Some(0), expires_at: Some(1_793_888_002), ..notice(NoticeState::Next) },
            PageDetails { form: Some(form), ..extras(100) },
        ),
        ("waiting-code-wrong", waiting(), PageDetails { device_wrong: true, ..extras(38) }),
        ("waiting-post-lost", waiting(), PageDetails { form_lost: true, ..extras(38) }),
    ]
}
