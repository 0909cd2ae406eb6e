//! Every state of the waiting room, to be looked at.

use super::error::{Particulars, Speaks, Trouble};
use super::look::{Look, read_template};
use super::page::{Extras, Form, Pages};
use super::told::{State, Told};
use std::fmt::Write as _;
use suimon_params::WaitingRoom;

/// Answers the page's script in place of a gateway: what the page was written with.
const STUB: &str =
    "<script>fetch=async()=>({ok:false,status:503,headers:new Headers,json:async()=>(TWIN)});</script>\n";

/// Returns the pages of a waiting room by the names of their files; the first lists the others.
///
/// # Errors
/// If the template cannot be read.
pub fn preview(params: &WaitingRoom) -> Result<Vec<(String, String)>, String> {
    let mut look = Look::of(params, read_template(params)?);
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
    for (name, told, extras) in examples(&form) {
        let mut told = told;
        told.message.clone_from(&params.message);
        let _ = write!(index, "<h2>{name}</h2>");
        for (language, tag) in pages.tags().iter().enumerate() {
            let page = pages.render(language, &told, &extras);
            let stub = STUB.replace("TWIN", &told.json().replace('<', "\\u003c"));
            let page = page.replacen("<script type=json", &format!("{stub}<script type=json"), 1);
            let _ = write!(index, "<a href={name}.{tag}.html lang={tag}>{tag}</a> ");
            out.push((format!("{name}.{tag}.html"), page));
        }
    }
    for trouble in Trouble::ALL {
        let name = format!("error-{}", trouble.key());
        let _ = write!(index, "<h2>{name}</h2>");
        for tag in pages.tags() {
            let retry_seconds =
                matches!(trouble, Trouble::Busy | Trouble::Restart | Trouble::Away).then_some(5);
            let particulars = Particulars { code: "example", retry_seconds, may_reload: true };
            let page = pages.error(&Speaks::language(tag), trouble, &particulars);
            let _ = write!(index, "<a href={name}.{tag}.html lang={tag}>{tag}</a> ");
            out.push((format!("{name}.{tag}.html"), page.text));
        }
    }
    index.push_str("</main>\n");
    out[0].1 = index;
    Ok(out)
}

fn examples(form: &Form) -> Vec<(&'static str, Told, Extras<'_>)> {
    let told = |state| Told {
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
    let waiting = || Told { ahead: Some(1204), eta: Some((372, 538)), ..told(State::Waiting) };
    let extras =
        |progress| Extras { url: "/concerts/42?seats=2", progress, refresh: true, ..Extras::default() };
    let seed_hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    vec![
        ("waiting", waiting(), extras(38)),
        ("soon", Told { ahead: Some(4), eta: Some((5, 18)), ..told(State::Soon) }, extras(97)),
        ("next", Told { ahead: Some(2), eta: Some((20, 75)), ..told(State::Next) }, extras(95)),
        ("your_turn", told(State::YourTurn), extras(100)),
        ("paused", Told { ahead: Some(1204), ..told(State::Paused) }, extras(38)),
        ("down", Told { ahead: Some(1204), ..told(State::Away) }, extras(38)),
        ("closed", told(State::Closed), extras(0)),
        (
            "opening",
            Told { opens_at: Some(1_793_952_000), ..told(State::Opening) },
            Extras { seed_hash, ..extras(0) },
        ),
        ("full", Told { poll_after: 30, ..told(State::Full) }, Extras { retry_after: 30, ..extras(0) }),
        ("pass", Told { pass_url: Some("/human?back=%2F".to_owned()), ..told(State::Pass) }, extras(0)),
        (
            "waiting-slower",
            Told { eta: Some((1320, 2050)), is_slower: true, ..waiting() },
            Extras { refresh: false, ..extras(31) },
        ),
        (
            "waiting-hours",
            Told { ahead: Some(184_211), eta: Some((8200, 11_900)), ..waiting() },
            Extras { device_code: "K7M-2QX", ..extras(4) },
        ),
        ("waiting-post", waiting(), Extras { form: Some(form), ..extras(38) }),
        (
            "next-post",
            Told { ahead: Some(0), expires_at: Some(1_793_888_002), ..told(State::Next) },
            Extras { form: Some(form), ..extras(100) },
        ),
        ("waiting-code-wrong", waiting(), Extras { device_wrong: true, ..extras(38) }),
        ("waiting-post-lost", waiting(), Extras { form_lost: true, ..extras(38) }),
    ]
}
