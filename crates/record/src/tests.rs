//! What is written is read back. Other bytes never cause a panic: the damage is reported with its
//! place.

use super::*;
use proptest::prelude::*;
use suimon_gate::{
    Adoption, Arrival, Gate, KindMode, KindParams, Membership, Params, RouteMode, SessionSignal,
};
use suimon_line::{Command, Lane, Position};
use suimon_model::{
    Failure, Instant, KindId, Limit, Outcome as How, RequestId, RouteId, SessionId, TraceHash, seconds,
};

fn position() -> impl Strategy<Value = Position> {
    (prop::sample::select(Lane::ALL.to_vec()), any::<u64>())
        .prop_map(|(lane, number)| Position { lane, number })
}

fn command() -> impl Strategy<Value = Command> {
    let opening = (any::<u64>(), any::<Option<[u64; 2]>>())
        .prop_map(|(at, lots)| Command::OpenAt { at: Instant::from_nanos(at), lots });
    prop_oneof![Just(Command::Pause), Just(Command::Move), Just(Command::Close), opening]
}

fn word() -> impl Strategy<Value = SessionSignal> {
    prop_oneof![
        Just(SessionSignal::Ends),
        Just(SessionSignal::Checkout),
        any::<u32>().prop_map(SessionSignal::Weighs)
    ]
}

fn line() -> impl Strategy<Value = Option<suimon_line::Params>> {
    prop::option::of(prop::array::uniform4(0.1..10.0).prop_map(|weights| suimon_line::Params { weights }))
}

fn event() -> impl Strategy<Value = Event> {
    let route = any::<u32>().prop_map(RouteId);
    let kind = || any::<u32>().prop_map(KindId);
    let session = || any::<u64>().prop_map(SessionId);
    let placed = (kind(), position(), session(), any::<bool>())
        .prop_map(|(kind, position, session, draws)| Membership::Placed { kind, position, session, draws });
    let entering = (kind(), position(), session())
        .prop_map(|(kind, position, session)| Membership::Entering { kind, position, session });
    let drawing =
        (kind(), position()).prop_map(|(kind, Position { lane, .. })| Membership::Drawing { kind, lane });
    let member = (kind(), any::<u64>().prop_map(SessionId), any::<bool>(), any::<bool>())
        .prop_map(|(kind, session, leased, ends)| Membership::Member { kind, session, leased, ends });
    let membership = prop_oneof![
        Just(None),
        kind().prop_map(|kind| Some(Membership::Newcomer(kind))),
        kind().prop_map(|kind| Some(Membership::WithoutLine(kind))),
        drawing.prop_map(Some),
        placed.prop_map(Some),
        entering.prop_map(Some),
        member.prop_map(Some)
    ];
    let how = prop_oneof![
        Just(How::Completed),
        Just(How::Declined),
        Just(How::Abandoned),
        Just(How::Failed(Failure::Connection)),
        Just(How::Failed(Failure::Timeout)),
        Just(How::Failed(Failure::ServerError)),
        Just(How::Failed(Failure::BadRequest)),
    ];
    let mode = prop_oneof![
        Just(RouteMode::Enforce),
        Just(RouteMode::Off),
        any::<u32>().prop_map(|limit| RouteMode::Fixed(Limit::of(limit)))
    ];
    let kind_mode = prop::sample::select(vec![KindMode::Enforce, KindMode::Observe, KindMode::Off]);
    let request = || any::<u64>().prop_map(RequestId);
    prop_oneof![
        Just(Event::Timeout),
        Just(Event::Drain),
        any::<bool>().prop_map(Event::Application),
        (any::<u32>(), any::<u32>()).prop_map(|(before, now_there)| Event::Nodes(before, now_there)),
        (route, membership).prop_map(|(route, session)| Event::Arrival(Arrival { route, session })),
        request().prop_map(Event::Departure),
        (request(), how).prop_map(|(request, how)| Event::End(request, how)),
        (any::<bool>(), mode.clone(), "[a-zé/{} ]{0,300}").prop_map(|(is_mixed, mode, name)| Event::Route {
            is_mixed,
            mode,
            name
        }),
        (any::<u32>(), 0u32..9, mode.clone(), kind_mode.clone()).prop_map(
            |(cores, route, mode, kind_mode)| {
                let kind = KindParams { mode: kind_mode, ..KindParams::default() };
                Event::Adopt(Box::new(Adoption {
                    params: Params { cores, ..Params::default() },
                    routes: vec![(RouteId(route), mode)],
                    kinds: vec![(KindId(route), kind)],
                }))
            }
        ),
        (0u32..9, mode, "[a-zé/{} ]{0,300}").prop_map(|(route, mode, name)| Event::Renewed {
            route: RouteId(route),
            mode,
            name
        }),
        (0u32..9, 0u32..9)
            .prop_map(|(route, other)| Event::LimitOf { route: RouteId(route), other: RouteId(other) }),
        (kind(), position()).prop_map(|(kind, position)| Event::Contact(kind, position)),
        (kind(), command()).prop_map(|(kind, command)| Event::Command(kind, command)),
        (session(), word()).prop_map(|(session, word)| Event::SessionSignal(session, word)),
        (kind_mode, "[a-z]{0,20}", any::<Option<u32>>(), line()).prop_map(|(mode, name, patience, line)| {
            Event::Kind {
                params: KindParams {
                    patience: patience.map(|ms| seconds(f64::from(ms) * 1e-3)),
                    hold: None,
                    mode,
                    line,
                },
                name,
            }
        }),
    ]
}

fn header() -> Header {
    Header {
        program: "0.1.0".to_string(),
        run: 7,
        segment: 3,
        at: Instant::from_nanos(99),
        routes: vec!["other".to_string(), "GET /items/{id}".to_string()],
        kinds: vec!["visit".to_string()],
        ..Header::default()
    }
}

/// A whole segment with these events, `per_block` events in each block.
fn segment(events: &[(u64, Event)], per_block: usize) -> Vec<u8> {
    let gate = Gate::new(Params::default(), Instant::ORIGIN);
    let mut file = begin(&header(), &gate.save().unwrap());
    let mut encoder = Encoder::default();
    for chunk in events.chunks(per_block) {
        chunk.iter().for_each(|(at, event)| encoder.push(Instant::from_nanos(*at), event));
        file.extend(super::events(&encoder.seal(TraceHash::default(), Vec::new())));
    }
    file.extend(end(SegmentEnd::Closed));
    file
}

/// Reads all events.
fn read(bytes: &[u8]) -> Result<Vec<(u64, Event)>, Damage> {
    let segment = Segment::read(bytes)?;
    let mut all = Vec::new();
    let mut ended = false;
    for part in segment.parts() {
        match part? {
            Part::Block(block) => {
                for event in block.events() {
                    let (at, event) = event?;
                    all.push((at.as_nanos(), event));
                }
            }
            Part::End(_) => ended = true,
        }
    }
    assert!(ended, "parts end with an end or with damage");
    Ok(all)
}

fn shown(events: &[(u64, Event)]) -> Vec<String> {
    let cut = |event: &Event| match event.clone() {
        Event::Route { is_mixed, mode, name } => {
            Event::Route { is_mixed, mode, name: name_cut(&name).to_string() }
        }
        Event::Renewed { route, mode, name } => {
            Event::Renewed { route, mode, name: name_cut(&name).to_string() }
        }
        other => other,
    };
    events.iter().map(|(at, event)| format!("{at} {:?}", cut(event))).collect()
}

#[test]
fn every_tag_is_in_one_row_of_the_table_and_every_row_is_read() {
    let mut next = 0;
    for row in TAGS {
        assert_eq!(row.first, next, "{row:?}");
        assert!(row.last >= row.first, "{row:?}");
        next = row.last + 1;
    }
    let is_known = |tag: u8| {
        let bytes = [tag, 0];
        let mut from = suimon_model::persist::Reader::new(&bytes);
        // The rest is cut off; what matters is whether the tag was valid.
        let why = Event::decode(0, &mut from).map_err(|broken| format!("{broken:?}"));
        !why.is_err_and(|why| why.contains("there is no such event"))
    };
    for tag in 0..=u8::MAX {
        assert_eq!(is_known(tag), tag < next, "{tag}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(events in prop::collection::vec((any::<u64>(), event()), 0..80), per_block in 1usize..40) {
        let file = segment(&events, per_block);
        prop_assert_eq!(shown(&read(&file).unwrap()), shown(&events));
        let back = Segment::read(&file).unwrap().header;
        prop_assert_eq!(format!("{back:?}"), format!("{:?}", header()));
    }

    #[test]
    fn a_recording_that_was_cut_says_where_it_stops(
        events in prop::collection::vec((any::<u64>(), event()), 1..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let file = segment(&events, 7);
        let length = cut.index(file.len());
        let damage = read(&file[..length]).unwrap_err();
        prop_assert_eq!(damage.at, length);
        prop_assert_eq!(damage.what, if length == 0 { What::Foreign } else { What::CutOff });
    }

    #[test]
    fn a_changed_byte_is_noticed(
        events in prop::collection::vec((any::<u64>(), event()), 1..40),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        let mut file = segment(&events, 7);
        let at = at.index(file.len());
        file[at] ^= flip;
        prop_assert!(read(&file).unwrap_err().at <= file.len());
    }

    #[test]
    fn no_bytes_are_reason_to_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(read(&bytes).is_err());
        let mut begun = MAGIC.to_vec();
        begun.extend(VERSION.to_le_bytes());
        begun.extend(&bytes);
        prop_assert!(read(&begun).unwrap_err().at <= begun.len());
    }

    #[test]
    fn no_content_with_a_good_checksum_is_reason_to_panic(content in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut file = segment(&[], 1);
        file.truncate(file.len() - end(SegmentEnd::Closed).len());
        file.extend(super::events(&content));
        file.extend(end(SegmentEnd::Closed));
        let _ = read(&file);
        // The same bytes, as a recording's header.
        let mut headed = MAGIC.to_vec();
        headed.extend(VERSION.to_le_bytes());
        block::frame(block::BlockKind::Header, &content, &mut headed);
        prop_assert!(Segment::read(&headed).is_err());
    }
}

#[test]
fn what_is_wrong_is_said_in_a_sentence_with_its_place() {
    let file = segment(&[(5, Event::Timeout)], 1);
    let told = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(told(b"GET / HTTP/1.1\r\n"), "at byte 0: it is not a recording of Suimon's");
    assert_eq!(told(b""), "at byte 0: it is not a recording of Suimon's");
    let mut newer = file.clone();
    let next = VERSION + 1;
    newer[MAGIC.len()..][..2].copy_from_slice(&next.to_le_bytes());
    assert_eq!(
        told(&newer),
        format!("at byte 8: its format is version {next}, and this program reads version {VERSION}")
    );
    let cut = told(&file[..file.len() - 1]);
    assert!(cut.starts_with(&format!("at byte {}: it stops before its end", file.len() - 1)), "{cut}");
    let mut longer = file.clone();
    longer.push(0);
    assert_eq!(told(&longer), format!("at byte {}: something follows the end", file.len()));
    let mut changed = file;
    let last = changed.len() - 11;
    changed[last] ^= 1;
    assert!(told(&changed).contains("the checksum is wrong"), "{}", told(&changed));
}

#[test]
fn a_request_takes_about_twenty_bytes() {
    let mut encoder = Encoder::default();
    let count = 1000;
    for n in 0..count {
        let at = Instant::from_nanos(1_000_000_000 + n * 2_000_000);
        let member = Membership::Member {
            kind: KindId(0),
            session: SessionId(u64::MAX - n),
            leased: true,
            ends: false,
        };
        encoder.push(at, &Event::Arrival(Arrival { route: RouteId(4), session: Some(member) }));
        encoder.push(at + seconds(0.001), &Event::End(RequestId(n << 32 | 70), How::Completed));
    }
    let each = encoder.seal(TraceHash::default(), Vec::new()).len() as u64 / count;
    assert!((20..=23).contains(&each), "{each} bytes");
}

#[test]
fn a_state_of_any_size_is_spread_over_blocks() {
    let state: Vec<u8> = (0..300_000u32).map(|n| n as u8).collect();
    let mut file = begin(&header(), &state);
    file.extend(end(SegmentEnd::Continued));
    let segment = Segment::read(&file).unwrap();
    assert_eq!(segment.snapshot, state);
    assert!(matches!(segment.parts().next(), Some(Ok(Part::End(SegmentEnd::Continued)))));
    assert_eq!(Header::place_of(&file[..200]), Some((7, 3)));
    assert_eq!(Header::place_of(&file[..20]), None);
}

#[test]
fn names_are_cut_between_letters() {
    let long = "é".repeat(200);
    assert_eq!(name_cut(&long).len(), NAME_BYTES_MAX);
    let odd = format!("x{long}");
    assert_eq!(name_cut(&odd).len(), NAME_BYTES_MAX - 1);
}
