//! Figures in all formats: SVG against reviewed files, PNG by its pixels, PDF by what other programs
//! read in it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::Command;

use windtunnel_plot::{
    Axis, AxisQuantity, Figure, FigureFormat, FigureSize, PlotError, PlotPanel, PlotSeries,
    SeriesInterpolation, VerticalMarker, render,
};

/// Two runs, three panels over one axis, two marks.
fn runs() -> Figure {
    let wave = |phase: u32, scale: f64| -> Vec<(f64, f64)> {
        let at = |n: u32| f64::from((n * n + phase * 17) % 97) / 97.0;
        (0..200).map(|n| (f64::from(n) * 0.1 + 0.05, (0.6 + 0.4 * at(n)) * scale)).collect()
    };
    let panel = |label: &str, quantity: AxisQuantity, scale: f64| {
        let mut panel = PlotPanel::new(Axis::seconds(), Axis::new(label, quantity));
        panel.series.push(PlotSeries::new("drop-tail", 0, wave(0, scale)));
        panel.series.push(PlotSeries::new("CoDel", 1, wave(1, scale * 0.4)));
        panel.marks = vec![
            VerticalMarker { at: 8.0, text: "ocean: rate=5mbit".to_owned() },
            VerticalMarker { at: 8.2, text: "too near for words".to_owned() },
            VerticalMarker { at: 15.0, text: "kv-1 killed".to_owned() },
        ];
        panel
    };
    Figure {
        title: Some("Bufferbloat: ocean, tokyo-paris".to_owned()),
        size: FigureSize::of_panels(3),
        panels: vec![
            panel("throughput", AxisQuantity::BitRate, 9.4e6),
            panel("queue", AxisQuantity::Packets, 800.0),
            panel("lateness", AxisQuantity::Nanoseconds, 350_000.0),
        ],
    }
}

/// Distributions on a logarithmic axis, a name that the font lacks, and one with marks of XML.
fn distributions() -> Figure {
    let axis = Axis::new("round-trip time", AxisQuantity::Nanoseconds).log();
    let share =
        Axis { range: Some((0.0, 1.0)), ..Axis::new("share of samples", AxisQuantity::Share) };
    let mut panel = PlotPanel::new(axis, share);
    for (index, (name, base)) in
        [("a & b", 2e5), ("京都", 3e6), ("paris – zürich", 9e6)].into_iter().enumerate()
    {
        let rise = |n: u32| (base * 1.09f64.powi(i32::try_from(n).unwrap()), f64::from(n) / 40.0);
        let mut series = PlotSeries::new(name, index, (0..=40).map(rise).collect());
        series.shape = SeriesInterpolation::Steps;
        series.dash = index;
        panel.series.push(series);
    }
    Figure { title: None, size: FigureSize::SINGLE_COLUMN, panels: vec![panel] }
}

/// One panel of little, wide.
fn wide() -> Figure {
    let mut panel = PlotPanel::new(
        Axis { range: Some((10.0, 20.0)), ..Axis::seconds() },
        Axis::new("drops", AxisQuantity::PacketRate),
    );
    panel.series.push(PlotSeries::new("ocean", 0, vec![(0.0, 99.0), (12.0, 3.0), (30.0, 0.0)]));
    Figure { title: None, size: "170x50mm".parse().unwrap(), panels: vec![panel] }
}

/// For people to look at.
fn keep(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Without the bytes of the font.
fn svg(name: &str, figure: &Figure) -> String {
    let bytes = render(figure, FigureFormat::Svg).unwrap();
    keep(&format!("{name}.svg"), &bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (before, rest) = text.split_once("base64,").unwrap();
    let (_, after) = rest.split_once(')').unwrap();
    format!("{before}FONT){after}")
}

#[test]
fn figures_are_the_reviewed_ones() {
    insta::assert_snapshot!("runs", svg("runs", &runs()));
    insta::assert_snapshot!("distributions", svg("distributions", &distributions()));
    insta::assert_snapshot!("wide", svg("wide", &wide()));
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    for format in [FigureFormat::Svg, FigureFormat::Png { dpi: 150 }, FigureFormat::Pdf] {
        assert_eq!(render(&runs(), format), render(&runs(), format), "{format:?}");
    }
}

/// An opaque image, as an independent library reads it.
struct DecodedImage {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl DecodedImage {
    fn of(file: &[u8]) -> DecodedImage {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut bytes).unwrap();
        assert_eq!(frame.color_type, png::ColorType::Rgb);
        let pixels = bytes.as_chunks().0.to_vec();
        assert_eq!(pixels.len(), frame.width as usize * frame.height as usize);
        DecodedImage { width: frame.width as usize, pixels }
    }
}

#[test]
fn an_image_has_the_asked_size_and_the_colours_of_its_series() {
    let bytes = render(&runs(), FigureFormat::Png { dpi: 300 }).unwrap();
    keep("runs.png", &bytes);
    keep("distributions.png", &render(&distributions(), FigureFormat::Png { dpi: 300 }).unwrap());
    keep("wide.png", &render(&wide(), FigureFormat::Png { dpi: 300 }).unwrap());
    let image = DecodedImage::of(&bytes);
    // 84 mm of 300 pixels to 25.4 mm, and 128 mm.
    assert_eq!((image.width, image.pixels.len()), (992, 992 * 1512));
    let count = |red: u8, green: u8, blue: u8| {
        image.pixels.iter().filter(|&&pixel| pixel == [red, green, blue]).count()
    };
    let (blue, orange) = (count(0x00, 0x72, 0xb2), count(0xd5, 0x5e, 0x00));
    assert!(blue > 2000 && orange > 2000, "{blue}, {orange}");
    // Letters.
    assert!(count(0, 0, 0) > 500);
    let white = count(255, 255, 255) * 100 / image.pixels.len();
    assert!((50..95).contains(&white), "{white}% are white");
}

#[test]
fn what_has_no_room_is_refused_with_what_it_needs() {
    let small = Figure { size: FigureSize::millimetres(84, 40), ..runs() };
    let Err(error @ PlotError::TooSmall { least, .. }) = render(&small, FigureFormat::Svg) else {
        panic!("it has no room for three panels");
    };
    assert!(error.to_string().contains("3 panels need at least 84x"), "{error}");
    assert!(render(&Figure { size: least, ..small.clone() }, FigureFormat::Svg).is_ok());
    let empty = Figure { panels: Vec::new(), ..small };
    assert_eq!(render(&empty, FigureFormat::Pdf), Err(PlotError::Empty));
    let huge = render(&runs(), FigureFormat::Png { dpi: 100_000 });
    assert!(matches!(huge, Err(PlotError::TooManyPixels { .. })));
}

/// The tools of poppler, where they are installed.
fn poppler(tool: &str) -> Option<Command> {
    let there = Command::new(tool).arg("-v").output().is_ok();
    if there {
        return Some(Command::new(tool));
    }
    assert!(std::env::var_os("CI").is_none(), "missing: {tool} (poppler-utils)");
    eprintln!("skipped: {tool} is not installed (poppler-utils)");
    None
}

#[test]
fn other_programs_read_the_text_of_a_pdf() {
    let path = keep("runs.pdf", &render(&runs(), FigureFormat::Pdf).unwrap());
    let Some(mut tool) = poppler("pdftotext") else { return };
    let output = tool.arg(&path).arg("-").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    for word in ["Bufferbloat", "throughput (Mbit/s)", "lateness (µs)", "time (s)", "CoDel", "20"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn other_programs_draw_a_pdf_as_the_image_is_drawn() {
    let path = keep("distributions.pdf", &render(&distributions(), FigureFormat::Pdf).unwrap());
    let Some(mut tool) = poppler("pdftoppm") else { return };
    let picture = path.with_extension("drawn");
    let status = tool.args(["-r", "150", "-png", "-singlefile"]).arg(&path).arg(&picture).status();
    assert!(status.unwrap().success());
    let theirs = std::fs::read(picture.with_extension("drawn.png"))
        .unwrap_or_else(|_| std::fs::read(format!("{}.png", picture.display())).unwrap());
    let theirs = DecodedImage::of(&theirs);
    let ours = render(&distributions(), FigureFormat::Png { dpi: 150 }).unwrap();
    let ours = DecodedImage::of(&ours);
    assert!(theirs.width.abs_diff(ours.width) <= 1, "{} {}", theirs.width, ours.width);
    // Both have about as much that is not white.
    let dark = |image: &DecodedImage| image.pixels.iter().filter(|pixel| pixel[1] < 200).count();
    let (theirs, ours) = (dark(&theirs), dark(&ours));
    assert!(theirs * 10 > ours * 8 && ours * 10 > theirs * 8, "{theirs} and {ours}");
}
