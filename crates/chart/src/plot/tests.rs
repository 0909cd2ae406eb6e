use super::*;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// What was drawn: element, class, and the path's data or the text inside.
#[derive(Debug)]
struct Drawn {
    element: String,
    class: String,
    data: String,
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> String {
    let found = tag.try_get_attribute(name).expect("attributes are well-formed");
    found.map(|found| found.value.into_owned()).unwrap_or_default()
}

/// Parses the figure as XML and checks that every number in it is a number.
fn read(svg: &str) -> Vec<Drawn> {
    let mut reader = Reader::from_str(svg);
    let mut drawn: Vec<Drawn> = Vec::new();
    let mut depth = 0;
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Start(tag) | Event::Empty(tag) if tag.name().as_ref() == "path" => {
                let data = attribute(&tag, "d");
                assert!(data.starts_with('M') && !data.contains("NaN") && !data.contains("inf"), "{data}");
                drawn.push(Drawn { element: "path".to_owned(), class: attribute(&tag, "class"), data });
            }
            Event::Start(tag) => {
                depth += 1;
                let element = tag.name().as_ref().to_owned();
                drawn.push(Drawn { element, class: attribute(&tag, "class"), data: String::new() });
            }
            Event::Empty(tag) => {
                for name in ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height"] {
                    let value = attribute(&tag, name);
                    assert!(value.is_empty() || value.parse::<f64>().unwrap().is_finite(), "{name}={value}");
                }
            }
            Event::Text(text) => {
                if let Some(last) = drawn.last_mut().filter(|last| last.element != "path") {
                    last.data.push_str(&text);
                }
            }
            Event::GeneralRef(entity) => {
                if let Some(last) = drawn.last_mut() {
                    last.data.push_str(&format!("&{};", &*entity));
                }
            }
            Event::End(_) => depth -= 1,
            Event::Eof => {
                assert_eq!(depth, 0);
                return drawn;
            }
            _ => {}
        }
    }
}

fn plot() -> Plot {
    Plot::new("Sessions")
        .describe("what is seen")
        .x(Axis::new("seconds"))
        .y(Axis::new("sessions per second").from(0.0))
}

fn draw(plot: &Plot) -> Vec<Drawn> {
    let page = plot.svg(Size::new(900.0, 320.0), Dress::Page);
    for (size, dress) in [(Size::new(380.0, 260.0), Dress::Page), (Size::new(0.0, 0.0), Dress::Alone)] {
        read(&plot.svg(size, dress));
    }
    read(&page)
}

fn texts(drawn: &[Drawn]) -> Vec<&str> {
    drawn.iter().filter(|drawn| drawn.element == "text").map(|drawn| drawn.data.trim()).collect()
}

#[test]
fn a_figure_tells_its_title_its_description_its_axes_and_its_names() {
    let figure = plot()
        .series(Series::line("with Suimon", Hue::Blue, vec![(0.0, 1.0), (10.0, 6.0)]))
        .rule(Rule::new(6.6, "bound 6.6"));
    let drawn = draw(&figure);
    let inside =
        |element: &str| drawn.iter().find(|drawn| drawn.element == element).map(|drawn| drawn.data.trim());
    assert_eq!((inside("title"), inside("desc")), (Some("Sessions"), Some("what is seen")));
    let texts = texts(&drawn);
    for text in ["seconds", "sessions per second", "with Suimon", "bound 6.6", "0", "10"] {
        assert!(texts.contains(&text), "{text} in {texts:?}");
    }
}

#[test]
fn remarks_stand_above_the_drawing_in_their_colours() {
    let figure = plot()
        .remark(Hue::Blue, "with Suimon: 5 per second")
        .remark(Hue::Vermilion, &"far too long for any figure ".repeat(20))
        .series(Series::line("a", Hue::Blue, vec![(0.0, 1.0), (10.0, 6.0)]));
    let drawn = draw(&figure);
    let texts: Vec<_> = drawn.iter().filter(|drawn| drawn.element == "text").collect();
    assert_eq!((texts[0].class.as_str(), texts[0].data.trim()), ("name h1", "with Suimon: 5 per second"));
    assert_eq!(texts[1].class, "name h2");
    assert!(texts[1].data.trim().ends_with('…'), "{}", texts[1].data);
    assert_eq!(texts[2].data.trim(), "sessions per second", "the axis comes after them");
}

#[test]
fn what_is_not_a_number_is_a_gap() {
    let points = vec![(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 2.0), (4.0, f64::INFINITY), (5.0, 1.0)];
    let drawn = draw(&plot().series(Series::line("a", Hue::Blue, points)));
    let line = drawn.iter().find(|drawn| drawn.element == "path").unwrap();
    assert_eq!(line.data.matches('M').count(), 3, "{}", line.data);
}

#[test]
fn nothing_at_all_is_a_figure_that_says_so() {
    let of = |points| draw(&plot().series(Series::line("a", Hue::Blue, points)));
    for drawn in [draw(&plot()), of(vec![]), of(vec![(0.0, f64::NAN)]), of(vec![(f64::NAN, 1.0)])] {
        assert!(texts(&drawn).contains(&"nothing was measured"));
    }
}

#[test]
fn one_point_and_one_value_are_drawn() {
    for points in [vec![(5.0, 3.0)], vec![(0.0, 0.0), (1.0, 0.0)], vec![(0.0, 7.0), (1.0, 7.0)]] {
        let drawn = draw(&plot().series(Series::steps("a", Hue::Green, points)));
        assert!(drawn.iter().any(|drawn| drawn.element == "path"));
    }
}

#[test]
fn steps_hold_their_value_until_the_next() {
    let figure = plot().series(Series::steps("limit", Hue::Blue, vec![(0.0, 1.0), (1.0, 2.0), (2.0, 2.0)]));
    let drawn = draw(&figure);
    let line = drawn.iter().find(|drawn| drawn.element == "path").unwrap();
    let points: Vec<(&str, &str)> =
        line.data[1..].split('L').map(|point| point.split_once(' ').unwrap()).collect();
    assert!(points.windows(2).all(|pair| pair[0].0 == pair[1].0 || pair[0].1 == pair[1].1), "{points:?}");
}

#[test]
fn a_logarithmic_axis_leaves_out_what_it_has_no_place_for() {
    let axis = Axis::new("users").logarithmic().ticks(vec![25.0, 50.0, 100.0, 200.0, 400.0]);
    let points = vec![(0.0, 1.0), (25.0, 1.0), (50.0, 2.0), (400.0, 3.0)];
    let drawn = draw(&plot().x(axis).series(Series::dotted("a", Hue::Purple, points)));
    assert!(texts(&drawn).contains(&"200"));
    let line = drawn.iter().find(|drawn| drawn.element == "path").unwrap();
    assert_eq!(line.data.matches(['M', 'L']).count(), 3);
}

#[test]
fn what_is_counted_has_whole_ticks() {
    for most in [1.0, 2.0, 3.0, 7.0, 200.0] {
        let figure = Plot::new("a").y(Axis::new("requests").from(0.0).whole());
        let drawn =
            draw(&figure.series(Series::steps("a", Hue::Blue, vec![(0.0, 0.0), (10.0, most)]).raised(3.0)));
        let labels = texts(&drawn);
        assert!(labels.iter().all(|text| !text.contains("0.5") && !text.contains("1.5")), "{labels:?}");
        assert!(labels.contains(&"0"), "{labels:?}");
    }
}

#[test]
fn names_and_titles_cannot_break_the_figure() {
    let figure =
        Plot::new("<script>\"&'").series(Series::line("</text>]]>\u{1}", Hue::Grey, vec![(0.0, 1.0)]));
    assert!(texts(&draw(&figure)).iter().any(|text| text.contains("&lt;/text&gt;")));
}

#[test]
fn a_very_long_series_keeps_its_peaks_and_is_bounded() {
    let mut points: Vec<(f64, f64)> = (0..1_000_000).map(|index| (f64::from(index), 1.0)).collect();
    points[777_777].1 = 100.0;
    let figure = plot().y(Axis::new("y").from(0.0).to(100.0)).series(Series::line("a", Hue::Blue, points));
    let drawn = draw(&figure);
    let line = drawn.iter().find(|drawn| drawn.element == "path").unwrap();
    let heights: Vec<f64> =
        line.data[1..].split('L').map(|point| point.split_once(' ').unwrap().1.parse().unwrap()).collect();
    assert!(heights.len() <= Plot::POINTS_MAX);
    let (low, high) = heights.iter().fold((f64::MAX, f64::MIN), |(l, h), y| (l.min(*y), h.max(*y)));
    assert!(high - low > 200.0, "the peak is drawn: {low} to {high}");
}

#[test]
fn bands_and_spans_are_drawn_under_the_lines() {
    let figure = plot()
        .series(Series::line("a", Hue::Blue, vec![(0.0, 1.0), (9.0, 2.0)]))
        .series(Series::line("", Hue::Blue, vec![(0.0, 3.0), (9.0, 1.0)]).faint().dashed())
        .band(Band::new(Hue::Blue, vec![(0.0, 0.5, 1.5), (5.0, f64::NAN, 2.0), (9.0, 1.0, 3.0)]))
        .span(Span::new(0.0, 4.0, "warming up"));
    let drawn = draw(&figure);
    let classes: Vec<&str> =
        drawn.iter().filter(|drawn| drawn.element == "path").map(|drawn| drawn.class.as_str()).collect();
    assert_eq!(classes, ["band h1", "line h1", "faint dashed h1"]);
    assert!(texts(&drawn).contains(&"warming up"));
}

#[test]
fn a_figure_of_its_own_carries_its_style() {
    let figure = plot();
    assert!(figure.svg(Size::new(500.0, 300.0), Dress::Alone).contains("prefers-color-scheme"));
    assert!(!figure.svg(Size::new(500.0, 300.0), Dress::Page).contains("<style>"));
}

#[test]
fn an_axis_can_have_words_in_place_of_numbers() {
    let words = vec![(0.0, "alone".to_owned()), (1.0, "40".to_owned()), (9.0, "beyond".to_owned())];
    let svg = Plot::new("By name")
        .x(Axis::new("heavy").from(0.0).to(1.0).words(words))
        .series(Series::dotted("a", Hue::Blue, vec![(0.0, 1.0), (1.0, 2.0)]))
        .svg(Size::new(400.0, 200.0), Dress::Page);
    let texts: Vec<String> = read(&svg).into_iter().map(|drawn| drawn.data.trim().to_owned()).collect();
    assert!(texts.contains(&"alone".to_owned()) && texts.contains(&"40".to_owned()), "{texts:?}");
    assert!(!texts.contains(&"beyond".to_owned()), "{texts:?}");
}
