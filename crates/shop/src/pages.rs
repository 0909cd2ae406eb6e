//! The routes. A page first checks whether the request is allowed, and only then works.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::catalogue::{Catalogue, PAGES};
use crate::http::{Request, Response};
use crate::light::{self, escape};
use crate::options::Options;
use crate::search::Search;
use crate::sessions::{Sessions, Unsold, Visitor};
use crate::work::Work;

/// The cookie that carries the session.
const COOKIE: &str = "SHOPSESSION";

/// The application behind the sockets.
pub(crate) struct Pages {
    catalogue: Arc<Catalogue>,
    search: Search,
    sessions: Sessions,
    orders: AtomicU64,
    pub(crate) work: Work,
}

impl Pages {
    /// Returns the shop's pages. Measures the work counts that the options leave open.
    pub(crate) fn prepare(options: &Options) -> Self {
        let catalogue = Arc::new(Catalogue::generate(options.seed, options.catalogue_bytes));
        let search = Search::new(Arc::clone(&catalogue), options.pool_shelves);
        let work = Work::prepare(options, &catalogue, &search);
        Pages { catalogue, search, sessions: Sessions::default(), orders: AtomicU64::new(0), work }
    }

    /// Returns the answer to the request.
    pub(crate) fn answer(&self, request: &Request) -> Response {
        let allowed = match request.path.as_str() {
            "/" | "/healthz" | "/browse" | "/search" => "GET, HEAD",
            "/login" | "/buy" | "/logout" => "POST",
            _ => return page(404, "Not found", "<p>There is no such page.</p>\n"),
        };
        if !allowed.split(", ").any(|method| method == request.method) {
            let mut answer = page(405, "Method not allowed", &format!("<p>Allowed: {allowed}</p>\n"));
            answer.headers = format!("Allow: {allowed}\r\n");
            return answer;
        }
        match request.path.as_str() {
            "/" => page(200, "The shop", LOGIN_FORM),
            "/healthz" => Response {
                status: 200,
                content_type: "text/plain",
                body: "ok\n".to_owned(),
                ..Response::default()
            },
            "/login" => self.login(request),
            path => {
                let visitor = request.cookie(COOKIE).and_then(|key| Some((key, self.sessions.visitor(key)?)));
                let Some((key, visitor)) = visitor else {
                    return page(
                        403,
                        "Please log in",
                        "<p>This page is for visitors who have logged in.</p>\n",
                    );
                };
                match path {
                    "/browse" => self.browse(request),
                    "/search" => self.search(request, &visitor),
                    "/buy" => self.buy(request, &visitor),
                    _ => self.logout(key, &visitor),
                }
            }
        }
    }

    fn login(&self, request: &Request) -> Response {
        let field = |name| request.form_field(name).filter(|value| !value.trim().is_empty());
        let (Some(user), Some(_)) = (field("user"), field("password")) else {
            return page(400, "Bad request", "<p>The fields user and password are needed.</p>\n");
        };
        let table = self.table(1);
        if let Some(old) = request.cookie(COOKIE) {
            self.sessions.end(old);
        }
        let title = format!("Welcome, {user}");
        let Some(key) = self.sessions.begin(user) else {
            return page(503, "Too many visitors", "<p>Please come back later.</p>\n");
        };
        let mut answer = page(200, &title, &table);
        answer.headers.push_str(&format!("Set-Cookie: {COOKIE}={key}; Path=/; HttpOnly\r\n"));
        answer
    }

    fn browse(&self, request: &Request) -> Response {
        let Some(asked) = request.query_field("page") else {
            return page(400, "Bad request", "<p>The field page is missing.</p>\n");
        };
        match asked.parse() {
            Ok(number) if (1..=PAGES).contains(&number) => {
                page(200, &format!("Catalogue page {number}"), &self.table(number))
            }
            _ => page(404, "No such page", &format!("<p>Catalogue pages go from 1 to {PAGES}.</p>\n")),
        }
    }

    fn search(&self, request: &Request, visitor: &Visitor) -> Response {
        let Some(word) = request.query_field("q").filter(|word| !word.trim().is_empty()) else {
            return page(400, "Bad request", "<p>The field q is missing.</p>\n");
        };
        let found = self.search.find(&word, self.work.search_repeats);
        let token = visitor.choose();
        let mut body = String::from("<ol>\n");
        for item in &found.matches {
            let line =
                format!("<li>{}, {} EUR, {} times</li>\n", escape(&item.name), item.price, item.matches);
            body.push_str(&line);
        }
        body.push_str(&format!(
            "</ol>\n<p>Item {} is in your cart, {} like it.</p>\n<form method=\"post\" action=\"/buy\">\
             <input type=\"hidden\" name=\"item\" value=\"1\">\
             <input type=\"hidden\" name=\"token\" value=\"{token}\"><button>Buy</button></form>\n",
            found.matches[0].id, found.alike
        ));
        page(200, &format!("Results for {word}"), &body)
    }

    fn buy(&self, request: &Request, visitor: &Visitor) -> Response {
        let field = |name| request.form_field(name).unwrap_or_default();
        let (item, token) = (field("item"), field("token"));
        let bought = visitor.buy(&item, &token, false).and_then(|()| {
            let table = self.table(1);
            // Check again: the same order may have arrived twice at once.
            visitor.buy(&item, &token, true).map(|()| table)
        });
        match bought {
            Ok(table) => {
                let order = self.orders.fetch_add(1, Ordering::Relaxed) + 1;
                page(200, &format!("Thank you, order {order}"), &table)
            }
            Err(Unsold::EmptyCart) => page(409, "Your cart is empty", ""),
            Err(Unsold::WrongToken) => page(403, "Wrong token, please search again", ""),
            Err(Unsold::NoSuchLine) => page(409, "Your cart has one line, item 1", ""),
        }
    }

    fn logout(&self, key: &str, visitor: &Visitor) -> Response {
        let table = self.table(1);
        self.sessions.end(key);
        page(200, &format!("Goodbye, {}", visitor.name), &table)
    }

    fn table(&self, page: usize) -> String {
        light::table(self.catalogue.page(page), self.work.light_work)
    }
}

const LOGIN_FORM: &str = "<form method=\"post\" action=\"/login\"><input name=\"user\">\
    <input name=\"password\" type=\"password\"><button>Log in</button></form>\n";

/// Returns a whole page. The title is text, the body is HTML.
pub(crate) fn page(status: u16, title: &str, body: &str) -> Response {
    let title = escape(title);
    Response {
        status,
        content_type: "text/html",
        headers: "Cache-Control: no-store\r\n".to_owned(),
        body: format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
             <body>\n<h1>{title}</h1>\n{body}</body></html>\n"
        ),
    }
}
