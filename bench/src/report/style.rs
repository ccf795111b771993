//! Colours and layout of the pages.

/// Colours of lines there are; more mechanisms begin anew.
pub(crate) const SERIES_COLOURS: usize = 9;

/// Okabe and Ito's palette, which the colour-blind can tell apart, darkened or
/// lightened where the background asks for it.
const LIGHT: [&str; SERIES_COLOURS] =
    ["#0072b2", "#c65102", "#007a5a", "#a5407d", "#8a6d00", "#5a8f00", "#6a3d9a", "#444444", "#b3282d"];
const DARK: [&str; SERIES_COLOURS] =
    ["#56b4e9", "#ff9e4a", "#2ed3a4", "#e79bc6", "#f0e442", "#b5e655", "#c3a5f0", "#cccccc", "#ff8a80"];

/// The style of all pages. Which page of several is shown, the buttons' state says.
pub(crate) const PAGE_STYLE: &str = "
body{background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;margin:0}
main{max-width:1240px;margin:0 auto;padding:1.5rem}
h1{font-size:1.6rem;margin:0 0 .5rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:1rem 0;font-size:.9rem}
dt{color:var(--soft)}dd{margin:0}
figure{margin:0;overflow-x:auto}figcaption{font-size:.85rem;color:var(--soft)}
svg{display:block;width:100%;min-width:640px;height:auto}
ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin:.25rem 0;padding:0;font-size:.9rem}
.key{display:inline-block;width:2rem;height:.5rem;min-width:0;vertical-align:middle;margin-right:.4rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
thead th{border-bottom:2px solid var(--soft)}
table.text th,table.text td{text-align:left;vertical-align:top}table.text td{white-space:normal}
td.best{font-weight:700;background:var(--best)}td.chosen{background:var(--best)}
p.summary{font-size:1.1rem;font-weight:600;margin:.5rem 0}p.warning{border-left:4px solid var(--s1);padding:.25rem .75rem}
.pages>input{position:absolute;opacity:0;pointer-events:none}.pages>section{display:none}
.pages>label{display:inline-block;padding:.4rem 1rem;border:1px solid var(--grid);border-radius:6px 6px 0 0;cursor:pointer;margin:0 .25rem 0 0}
.pages>input:checked+label{background:var(--best);font-weight:600;border-bottom-color:var(--best)}
.pages>input:focus-visible+label{outline:2px solid var(--ink);outline-offset:2px}
@media(max-width:690px){figcaption::before{content:'Scroll the picture sideways to see all sizes. '}}
details{margin:1rem 0;font-size:.9rem}summary{cursor:pointer;color:var(--soft)}
";

/// The colours as variables, for light and dark.
pub(crate) fn colours() -> String {
    let set = |series: &[&str], others: &str| {
        let series: Vec<String> =
            series.iter().enumerate().map(|(index, colour)| format!("--s{index}:{colour};")).collect();
        format!("{}{others}", series.concat())
    };
    let light = set(
        &LIGHT,
        "--paper:#fff;--ink:#1a1a1a;--soft:#555;--grid:#c4c4c4;--faint:#ececec;--mark:#666;--best:#e8f1fa",
    );
    let dark = set(
        &DARK,
        "--paper:#16181c;--ink:#e8e8e8;--soft:#aaa;--grid:#50545c;--faint:#2a2d33;--mark:#aaa;--best:#23384d",
    );
    format!(":root{{color-scheme:light dark;{light}}}\n@media(prefers-color-scheme:dark){{:root{{{dark}}}}}")
}

/// Text in HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
