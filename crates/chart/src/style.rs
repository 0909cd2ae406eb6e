//! The colours for light and dark mode, and the widths of lines.

/// A series' colour. Readers who cannot tell red from green can tell them apart. Their contrast
/// with the background is 3 or more in light and dark mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hue {
    /// Water.
    Blue,
    /// A gate's lacquer.
    Vermilion,
    /// Moss.
    Green,
    /// Iris.
    Purple,
    /// Brass.
    Amber,
    /// Stone: for comparisons.
    Grey,
}

impl Hue {
    /// All colours, in the order in which to use them.
    pub const ALL: [Hue; 6] = [Hue::Blue, Hue::Vermilion, Hue::Green, Hue::Purple, Hue::Amber, Hue::Grey];

    /// Returns the colour for the series with this index; colours repeat after the last.
    pub const fn of(index: usize) -> Hue {
        Hue::ALL[index % Hue::ALL.len()]
    }

    pub(crate) const fn class(self) -> &'static str {
        match self {
            Hue::Blue => "h1",
            Hue::Vermilion => "h2",
            Hue::Green => "h3",
            Hue::Purple => "h4",
            Hue::Amber => "h5",
            Hue::Grey => "h6",
        }
    }
}

/// The style sheet of every figure. A page carries it once; a page that sets the custom properties
/// on `.chart` itself gives the figures its own colours.
pub const STYLE: &str = "\
.chart{--paper:#fdfcfa;--ink:#23282d;--soft:#5d666f;--grid:#e7e4de;--axis:#b9b5ad;\
--h1:#1a6fb5;--h2:#c64f1d;--h3:#177f5c;--h4:#9c4f8f;--h5:#9a6b00;--h6:#6b7580;\
font:13px/1.2 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
font-variant-numeric:tabular-nums;overflow:visible}
@media(prefers-color-scheme:dark){.chart{--paper:#15191d;--ink:#e6e8ea;--soft:#a2abb3;--grid:#272d33;--axis:#4b545c;\
--h1:#62b2f0;--h2:#f28b5b;--h3:#4cc49a;--h4:#d795c8;--h5:#dfb04c;--h6:#97a2ac}}
.chart .h1{--h:var(--h1)}.chart .h2{--h:var(--h2)}.chart .h3{--h:var(--h3)}
.chart .h4{--h:var(--h4)}.chart .h5{--h:var(--h5)}.chart .h6{--h:var(--h6)}
.chart .paper{fill:var(--paper)}
.chart text{fill:var(--soft)}.chart .title{fill:var(--ink);font-size:16px;font-weight:600}
.chart .name{fill:var(--h);font-weight:600}.chart .value{fill:var(--ink)}
.chart .grid{stroke:var(--grid);stroke-width:1}.chart .axis{stroke:var(--axis);stroke-width:1}
.chart .line{fill:none;stroke:var(--h);stroke-width:2.25;stroke-linejoin:round;stroke-linecap:round}
.chart .faint{fill:none;stroke:var(--h);stroke-width:1;stroke-opacity:.35;stroke-linejoin:round}
.chart .dashed{stroke-dasharray:6 4}
.chart .dot{fill:var(--h);stroke:var(--paper);stroke-width:1.5}
.chart .band{fill:var(--h);fill-opacity:.14}.chart .span{fill:var(--axis);fill-opacity:.16}
.chart .rule{stroke:var(--h);stroke-width:1.5;stroke-dasharray:2 4;stroke-linecap:round}
.chart .lead{stroke:var(--h);stroke-width:1;stroke-opacity:.5;fill:none}
.chart .bar{fill:var(--h)}
";

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG defines it.
    fn luminance(hex: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn colour(sheet: &str, name: &str) -> f64 {
        let at = sheet.find(&format!("--{name}:#")).unwrap() + name.len() + 3;
        luminance(&sheet[at..at + 7])
    }

    #[test]
    fn every_colour_can_be_told_from_its_ground_in_light_and_dark() {
        let (light, dark) = STYLE.split_once("@media").unwrap();
        for sheet in [light, dark] {
            let paper = colour(sheet, "paper");
            let contrast = |name: &str| {
                let (a, b) = (colour(sheet, name), paper);
                (a.max(b) + 0.05) / (a.min(b) + 0.05)
            };
            for name in ["h1", "h2", "h3", "h4", "h5", "h6", "ink", "soft"] {
                // 4.5: names of series are written in their colours.
                assert!(contrast(name) >= 4.5, "{name}: {:.2}", contrast(name));
            }
        }
    }
}
