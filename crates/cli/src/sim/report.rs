//! The report: one page for the browser, scenario by scenario.

use super::answer::{Answer, Run};
use super::figures;
use super::json::Numbers;
use super::question::Contender;
use super::table::{self, BESIDE_MAX, BandLine, COLUMNS, HELD, LEGEND, MISSED};
use crate::page::{self, bars, both_widths, escape, half};
use std::fmt::{Result, Write as _};

/// Returns the page.
pub(super) fn page(answers: &[Answer<'_>], numbers: &Numbers) -> String {
    let mut page = String::with_capacity(256 * 1024);
    // Writing into a String cannot fail.
    let _ = write_page(&mut page, answers, numbers);
    page
}

fn write_page(page: &mut String, answers: &[Answer<'_>], numbers: &Numbers) -> Result {
    let verdict = table::verdict(answers);
    let (headline, rest) = verdict.split_once(": ").unwrap_or((verdict.trim_end_matches('.'), ""));
    page::begin(page, &format!("Suimon sim: {headline}"), headline, &capitalised(rest))?;
    if answers.len() > 1 {
        page::section(page, "Scenarios", "", &contents(answers))?;
    }
    for (number, answer) in answers.iter().enumerate() {
        one(page, number, answer)?;
    }
    page::section(page, "How this was found", "", METHOD)?;
    page::end(page, numbers)
}

const METHOD: &str = "<p>Visitors, gate and laws are the code of the gateway itself, played in virtual time; only the application is a \
     model: processors that are shared, memory that costs more the fuller it is, threads, waiting for others. The same scenario, \
     law and seed give the same run, event by event. docs/simulator.md says what the model knows, and what it does not.</p>\n\
     <p class=\"soft\">All numbers are inside this page, as JSON, in the element <code>numbers</code>.</p>\n";

/// Returns the list of scenarios with their verdicts.
fn contents(answers: &[Answer<'_>]) -> String {
    let line = |(number, answer): (usize, &Answer<'_>)| {
        let scenario = &answer.question.scenario;
        format!(
            "<li>{} <a href=\"#s{number}\">{}</a><span>{}</span></li>\n",
            mark(Some(answer.holds())),
            escape(&scenario.name),
            escape(&scenario.question)
        )
    };
    format!(
        "<ul class=\"list scenarios\">\n{}</ul>\n",
        answers.iter().enumerate().map(line).collect::<String>()
    )
}

fn one(page: &mut String, number: usize, answer: &Answer<'_>) -> Result {
    let scenario = &answer.question.scenario;
    writeln!(page, "<section class=\"scenario\" id=\"s{number}\">")?;
    writeln!(page, "<h2>{} {}</h2>", mark(Some(answer.holds())), escape(&scenario.name))?;
    writeln!(page, "<p class=\"question\">{}</p>", escape(&scenario.question))?;
    let circumstances = table::circumstances(answer).join("; ");
    writeln!(page, "<p class=\"soft\">{}.</p>", escape(&capitalised(&circumstances)))?;
    expected(page, answer)?;
    laws(page, answer)?;
    services(page, answer)?;
    page.push_str("</section>\n");
    figures(page, answer)
}

/// Writes the bands; a missed one has the command that plays it again.
fn expected(page: &mut String, answer: &Answer<'_>) -> Result {
    page.push_str("<ul class=\"list\">\n");
    let names = || answer.question.contenders.iter().map(|contender| &contender.name);
    for BandLine { band, held, values, again } in table::band_lines(answer) {
        write!(page, "<li>{} {}", mark(held), escape(&band))?;
        let numbers =
            |(name, value): (&String, &String)| format!("<span>{} {}</span> ", escape(name), escape(value));
        let (own, others) = values.split_at(values.len().min(1));
        page.extend(names().zip(own).map(numbers));
        let others: String = names().skip(1).zip(others).map(numbers).collect();
        if values.len() > BESIDE_MAX {
            write!(page, "<details><summary>others</summary>{others}</details>")?;
        } else {
            page.push_str(&others);
        }
        for line in again {
            write!(page, "<code>{}</code>", escape(&line))?;
        }
        page.push_str("</li>\n");
    }
    for line in table::violations(answer) {
        writeln!(page, "<li>{} {}</li>", mark(Some(false)), escape(&line))?;
    }
    if answer.missing() > 0 {
        let (missing, wanted) = (answer.missing(), answer.wanted());
        writeln!(page, "<li>{} incomplete: {missing} of {wanted} runs were not played</li>", mark(None))?;
    }
    page.push_str("</ul>\n");
    Ok(())
}

/// Writes a table with a row per law.
fn laws(page: &mut String, answer: &Answer<'_>) -> Result {
    let row = |(contender, runs): (&Contender, &[Run])| (contender.name.clone(), table::cells(runs).to_vec());
    let rows = answer.contenders().map(|(contender, runs)| row((contender, runs)));
    page.push_str(&page::table("laws", "", &COLUMNS.map(|(name, _)| name), rows));
    writeln!(page, "<p class=\"soft\">{LEGEND}</p>")
}

/// Writes a table with a row per law and service, if there are services.
fn services(page: &mut String, answer: &Answer<'_>) -> Result {
    let rows = table::services(answer);
    let Some((head, rows @ [_, ..])) = rows.split_first() else { return Ok(()) };
    page.push_str("<table class=\"laws\">\n<thead><tr>");
    for name in head {
        write!(page, "<th scope=\"col\">{name}</th>")?;
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for (name, cell) in head.iter().zip(row) {
            write!(page, "<td data-name=\"{name}\">{}</td>", escape(cell))?;
        }
        page.push_str("</tr>\n");
    }
    writeln!(
        page,
        "</tbody>\n</table>\n<p class=\"soft\">slowed: response time ÷ time alone; share: of the \
         processor seconds of all services. Means over the seeds.</p>"
    )
}

fn figures(page: &mut String, answer: &Answer<'_>) -> Result {
    let bin = figures::bin_s(answer);
    let laws = answer.question.contenders.len();
    let left_out = match laws.saturating_sub(figures::LAWS_MAX) {
        0 => String::new(),
        more => format!(" {more} more laws are in the table only."),
    };
    let seeds = match answer.question.seeds.len() {
        1 => "One seed.".to_owned(),
        seeds => format!("Lines are means of {seeds} seeds, areas reach from the least to the most."),
    };
    let words = format!(
        "Over {bin} s each. {seeds} The line named bound is the most the application can do.{left_out}"
    );
    figure(page, "Sessions finished", &words, &both_widths(&figures::goodput(answer)))?;
    let first = answer.question.seeds.first().map_or(String::new(), |seed| format!(", seed {seed}"));
    let name = answer.question.contenders.first().map_or("", |own| own.name.as_str());
    let of_one = |words: &str| format!("{}{first}: {words}", escape(&capitalised(name)));
    page.push_str("<div class=\"pair\">\n");
    figure(
        page,
        "How much at once",
        &of_one("the limits of the routes where most is going on."),
        &half(&figures::limits(answer)),
    )?;
    figure(
        page,
        "When the next one is let in",
        &of_one("the pace at which sessions begin. 0: the gate is open."),
        &half(&figures::interval(answer)),
    )?;
    figure(
        page,
        "Where visitors are",
        &of_one("held at the gate, or let in; and of those let in, queued or in service."),
        &half(&figures::visitors(answer)),
    )?;
    match figures::failures(answer) {
        Some(failures) => {
            figure(
                page,
                "Where sessions failed",
                "Time-outs and errors, mean of a run, by the step where they happened.",
                &bars(&failures),
            )?;
        }
        None => figure(page, "Where sessions failed", "Nowhere.", "")?,
    }
    page.push_str("</div>\n");
    Ok(())
}

fn figure(page: &mut String, title: &str, words: &str, inside: &str) -> Result {
    writeln!(
        page,
        "<section class=\"drawn\">\n<h3>{title}</h3>\n<p class=\"soft\">{words}</p>\n{inside}</section>"
    )
}

fn mark(held: Option<bool>) -> String {
    let (class, sign, words) = match held {
        Some(true) => ("held", HELD, "holds"),
        Some(false) => ("missed", MISSED, "does not hold"),
        None => ("open", "·", "not known"),
    };
    format!("<b class=\"{class}\" role=\"img\" aria-label=\"{words}\">{sign}</b>")
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
