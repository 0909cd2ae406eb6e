//! One visit that tries what a wiki needs of its server: redirects, `PATH_INFO`, a session over
//! many requests, edits, an upload, and what browsers ask for beside pages.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text::{encoded, input, png, visible};
use super::wiki::{HOST, PASSWORD};
use crate::http::{self, Answer, FORM};
use crate::trouble::{Result, failed};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Separates the parts of an upload.
const BOUNDARY: &str = "----part-of-an-upload";
/// Pixels in a row and rows of the picture: about 200 kB, which is more than a record of FastCGI
/// and more than a gateway keeps in one buffer.
const PICTURE_SIDE: u32 = 256;

/// One request of a visit, and what came of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Exchange {
    pub(super) what: String,
    pub(super) status: u16,
    pub(super) location: Option<String>,
    /// Headers that say what a browser may do with it.
    pub(super) headers: Vec<String>,
    /// Names of the cookies it sets, those of the gateway left out.
    pub(super) cookies: Vec<String>,
    /// What is not as MediaWiki means it.
    pub(super) wrong: Vec<String>,
    /// Words that a reader sees.
    pub(super) words: usize,
    /// What a reader sees, with the visitor's name and numbers blotted out.
    #[serde(skip)]
    pub(super) text: String,
}

/// The headers that are compared.
const COMPARED: [&str; 6] =
    ["content-type", "cache-control", "vary", "content-language", "content-range", "last-modified"];

/// What an answer has to be.
#[derive(Clone, Copy)]
struct Expected<'a> {
    status: u16,
    location: Option<&'a str>,
    texts: &'a [&'a str],
}

/// What is sent.
enum Body<'a> {
    Nothing,
    Fields(&'a [(&'a str, &'a str)]),
    /// Fields, and the file of the last field.
    Upload(&'a [(&'a str, &'a str)], (&'a str, &'a str, &'a [u8])),
}

/// A browser that keeps its cookies.
struct Visit<'a> {
    to: SocketAddr,
    /// The visitor's name, which is in all that the visit makes.
    name: &'a str,
    cookies: BTreeMap<String, String>,
    done: Vec<Exchange>,
}

/// Returns what is expected of an answer with this status and these texts.
const fn page<'a>(status: u16, texts: &'a [&'a str]) -> Expected<'a> {
    Expected { status, location: None, texts }
}

/// Returns what is expected of a redirect to this path of the wiki.
const fn redirect(status: u16, location: &str) -> Expected<'_> {
    Expected { status, location: Some(location), texts: &[] }
}

/// Visits the wiki at `to` as user `name`, who is known there and whose pages are not there yet.
pub(super) fn visit(to: SocketAddr, name: &str) -> Result<Vec<Exchange>> {
    let mut visit = Visit { to, name, cookies: BTreeMap::new(), done: Vec::new() };
    visit.read()?;
    visit.log_in()?;
    visit.edit()?;
    visit.upload()?;
    visit.log_out()?;
    Ok(visit.done)
}

impl Visit<'_> {
    /// Pages, redirects and programs, as a stranger.
    fn read(&mut self) -> Result<()> {
        let main = "/index.php/Main_Page";
        self.get("the root", "/", redirect(301, main))?;
        self.get("the program without a page", "/index.php", redirect(301, main))?;
        self.get("a title in small letters", "/index.php?title=main_Page", redirect(301, main))?;
        self.get("the main page", main, page(200, &["MediaWiki has been installed", "Log in"]))?;
        self.get("a page", "/index.php/Page_1", page(200, &["Line 40 of page 1 tells"]))?;
        self.get("a page by its query", "/index.php?title=Page_2", page(200, &["Line 40 of page 2 tells"]))?;
        self.get("an encoded path", "/index.php/Page%5F3", page(200, &["Line 40 of page 3 tells"]))?;
        self.get("a missing page", "/index.php/No_such_page", page(404, &["no text in this page"]))?;
        let renamed = &["Redirected from", "Line 40 of page 1 tells"];
        self.get("a page under its old name", "/index.php/Old_name", page(200, renamed))?;
        let found = redirect(302, "/index.php/Page_4");
        self.get("a search that hits", "/index.php?title=Special:Search&search=Page+4&go=Go", found)?;
        self.get("a path without a program", "/nothing/here", redirect(301, main))?;
        let json = &["Line 40 of page 5 tells"];
        let query =
            "/api.php?action=query&titles=Page_5&prop=revisions&rvprop=content&rvslots=main&format=json";
        self.get("the API", query, page(200, json))?;
        self.get("the REST API", "/rest.php/v1/page/Page_6", page(200, &["Line 40 of page 6 tells"]))?;
        let script = "/load.php?lang=en&modules=jquery&only=scripts&skin=vector";
        let answer = self.get("a script", script, page(200, &["jQuery"]))?;
        let tag = answer.header("etag").unwrap_or("none").to_string();
        let known = [("If-None-Match", tag)];
        self.ask("a script that is known", script, &known, &Body::Nothing, &page(304, &[]))?;
        self.get("a file that is no program", "/composer.json", redirect(301, main)).map(drop)
    }

    fn log_in(&mut self) -> Result<()> {
        let path = "/index.php?title=Special:UserLogin&returnto=Page_1";
        let form = self.get("the form to log in", path, page(200, &["Password"]))?;
        let (name, token) = (self.name, field(&form, "wpLoginToken")?);
        let wrong = [
            ("wpName", name),
            ("wpPassword", "something else"),
            ("wploginattempt", "Log in"),
            ("authAction", "login"),
            ("wpEditToken", "+\\"),
            ("wpLoginToken", &token),
        ];
        let refused = page(200, &["Incorrect username or password"]);
        self.ask("a wrong password", path, &[], &Body::Fields(&wrong), &refused)?;
        let mut right = wrong;
        right[1].1 = PASSWORD;
        let goes_on = redirect(302, "/index.php/Page_1");
        self.ask("the right one", path, &[], &Body::Fields(&right), &goes_on)?;
        self.get("a page as a user", "/index.php/Page_1", page(200, &[name, "Log out"])).map(drop)
    }

    fn edit(&mut self) -> Result<()> {
        let title = format!("{}_note", self.name);
        let path = format!("/index.php?title={title}&action=edit");
        let form = self.get("the form to edit", &path, page(200, &["Save page"]))?;
        let text = format!("Written by {} – with ''signs'' & <nowiki><b></nowiki>: 水門", self.name);
        let (token, check) = (field(&form, "wpEditToken")?, field(&form, "wpUnicodeCheck")?);
        let (from, at) = (field(&form, "wpStarttime")?, field(&form, "wpEdittime")?);
        let fields = [
            ("wpUnicodeCheck", &check[..]),
            ("wpStarttime", &from),
            ("wpEdittime", &at),
            ("wpEditToken", &token),
            ("wpTextbox1", &text),
            ("wpSummary", "a visit"),
            ("wpUltimateParam", "1"),
            ("model", "wikitext"),
            ("format", "text/x-wiki"),
            ("wpSave", "Save page"),
        ];
        let path = format!("/index.php?title={title}&action=submit");
        let shown = format!("/index.php/{title}");
        self.ask("an edit", &path, &[], &Body::Fields(&fields), &redirect(302, &shown))?;
        self.get("the page that was edited", &shown, page(200, &["Written by", "水門"]))?;
        let again: Vec<_> =
            fields.map(|field| if field.0 == "wpEditToken" { ("wpEditToken", "+\\") } else { field }).into();
        let refused = page(200, &["loss of session data"]);
        self.ask("an edit with a foreign token", &path, &[], &Body::Fields(&again), &refused).map(drop)
    }

    fn upload(&mut self) -> Result<()> {
        let form =
            self.get("the form to upload", "/index.php/Special:Upload", page(200, &["Upload file"]))?;
        let (token, file) = (field(&form, "wpEditToken")?, format!("{}.png", self.name));
        let seed = self.name.bytes().map(u32::from).sum();
        let picture = png(PICTURE_SIDE, seed);
        let fields = [
            ("wpEditToken", &token[..]),
            ("wpSourceType", "file"),
            ("wpDestFile", &file),
            ("wpUploadDescription", "a picture of noise"),
            ("wpIgnoreWarning", "1"),
            ("wpUpload", "Upload file"),
            ("title", "Special:Upload"),
        ];
        let body = Body::Upload(&fields, ("wpUploadFile", &file, &picture));
        let shown = format!("/index.php/File:{file}");
        self.ask("an upload", "/index.php/Special:Upload", &[], &body, &redirect(302, &shown))?;
        let answer = self.get("the page of the file", &shown, page(200, &["a picture of noise"]))?;
        let html = String::from_utf8_lossy(&answer.body).into_owned();
        let Some(at) = html.find("/img_auth.php/") else { return failed("no file is named on its page") };
        let path = html[at..].split('"').next().unwrap_or_default().to_string();
        let answer = self.get("the file", &path, page(200, &[]))?;
        self.check("it is not what was uploaded", answer.body == picture);
        self.check("it is no picture", answer.header("content-type") == Some("image/png"));
        let length = answer.header("content-length").map(str::to_string);
        self.check("its length is wrong", length.is_none_or(|length| length == picture.len().to_string()));
        let since = answer.header("last-modified").unwrap_or_default().to_string();
        let known = [("If-Modified-Since", since)];
        self.ask("the file, which is known", &path, &known, &Body::Nothing, &page(304, &[]))?;
        let part = [("Range", "bytes=100-199".to_string())];
        let answer = self.ask("a part of the file", &path, &part, &Body::Nothing, &page(206, &[]))?;
        self.check("it is another part", Some(&answer.body[..]) == picture.get(100..200));
        let missing = "/img_auth.php/0/00/Missing.png";
        self.get("a missing file", missing, page(403, &[])).map(drop)
    }

    fn log_out(&mut self) -> Result<()> {
        let path = "/index.php?title=Special:UserLogout";
        let form = self.get("the form to log out", path, page(200, &["Log out"]))?;
        let token = field(&form, "wpEditToken")?;
        let fields = [("wpEditToken", &token[..]), ("title", "Special:UserLogout")];
        let done = page(200, &["You are now logged out"]);
        self.ask("to log out", path, &[], &Body::Fields(&fields), &done)?;
        self.get("a page as a stranger again", "/index.php/Page_1", page(200, &["Log in"]))?;
        let preferences = "/index.php/Special:Preferences";
        let to = "/index.php?title=Special:UserLogin&returnto=Special%3APreferences&returntoquery=&warning=prefsnologintext2";
        self.get("what only users see", preferences, Expected { status: 302, location: Some(to), texts: &[] })
            .map(drop)
    }

    fn get(&mut self, what: &str, path: &str, expected: Expected<'_>) -> Result<Answer> {
        self.ask(what, path, &[], &Body::Nothing, &expected)
    }

    fn ask(
        &mut self,
        what: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &Body<'_>,
        expected: &Expected<'_>,
    ) -> Result<Answer> {
        let mut headers = headers.to_vec();
        headers.push(("Accept", "text/html,*/*;q=0.8".to_string()));
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            headers.push(("Cookie", cookies.join("; ")));
        }
        let body = body.bytes();
        let body = body.as_ref().map(|(kind, bytes)| (&kind[..], &bytes[..]));
        let answer = http::ask(self.to, HOST, path, &headers, body, PATIENCE)?;
        let mut set = Vec::new();
        for (name, value) in answer.cookies() {
            // MediaWiki takes a cookie away by this value and a date in the past.
            if value == "deleted" {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_string(), value.to_string());
            }
            if !name.contains("suimon") {
                let away = if value == "deleted" { " away" } else { "" };
                set.push(format!("{}{away}", visible(name, self.name)));
            }
        }
        set.sort();
        set.dedup();
        let html = String::from_utf8_lossy(&answer.body);
        let mut wrong = Vec::new();
        if answer.status != expected.status {
            wrong.push(format!("status {}, not {}", answer.status, expected.status));
        }
        let location = answer.header("location").map(str::to_string);
        let means = expected.location.map(|path| format!("http://{HOST}{path}"));
        if location != means {
            wrong.push(format!("leads to {location:?}, not {means:?}"));
        }
        wrong.extend(
            expected.texts.iter().filter(|text| !html.contains(**text)).map(|text| format!("no {text:?}")),
        );
        let is_text = answer
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/") || kind.contains("json"));
        let text = if is_text { visible(&html, self.name) } else { String::new() };
        let location = location.map(|location| location.replace(self.name, "NAME"));
        let header = |name: &&str| Some(format!("{name}: {}", visible(answer.header(name)?, self.name)));
        self.done.push(Exchange {
            what: what.to_string(),
            status: answer.status,
            location,
            headers: COMPARED.iter().filter_map(header).collect(),
            cookies: set,
            wrong,
            words: text.split_whitespace().count(),
            text,
        });
        Ok(answer)
    }

    /// Notes of the last exchange what is wrong with it, unless it is right.
    fn check(&mut self, wrong: &str, is_right: bool) {
        if let (false, Some(exchange)) = (is_right, self.done.last_mut()) {
            exchange.wrong.push(wrong.to_string());
        }
    }
}

impl Body<'_> {
    /// Returns the content type and the bytes, if there is a body.
    fn bytes(&self) -> Option<(String, Vec<u8>)> {
        match self {
            Body::Nothing => None,
            Body::Fields(fields) => {
                let pairs: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
                    .collect();
                Some((FORM.to_string(), pairs.join("&").into_bytes()))
            }
            Body::Upload(fields, (name, file, content)) => {
                let part = |(name, value): &(&str, &str)| {
                    format!(
                        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
                    )
                };
                let fields: String = fields.iter().map(part).collect();
                let head = format!(
                    "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\
                     Content-Type: image/png\r\n\r\n"
                );
                let end = format!("\r\n--{BOUNDARY}--\r\n");
                let bytes = [fields.as_bytes(), head.as_bytes(), content, end.as_bytes()].concat();
                Some((format!("multipart/form-data; boundary={BOUNDARY}"), bytes))
            }
        }
    }
}

fn field(form: &Answer, name: &str) -> Result<String> {
    match input(&String::from_utf8_lossy(&form.body), name) {
        Some(value) => Ok(value),
        None => failed(format!("the form has no {name} (status {})", form.status)),
    }
}
