//! The codec beside another one, written by other people: both must say and hear the same.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use bytes::BytesMut;
use fastcgi_client::{Client, Params, Request};
use proptest::prelude::*;
use std::collections::BTreeMap;
use suimon_fastcgi::record::{HEADER, Header, Kind};
use suimon_fastcgi::request::{Environment, begin, stdin};
use suimon_fastcgi::response::{Decoder, End, Event};

/// What a request says, however it is cut into records.
#[derive(PartialEq, Debug, Default)]
struct Said {
    begin: Vec<u8>,
    variables: BTreeMap<Vec<u8>, Vec<u8>>,
    body: Vec<u8>,
}

fn said(mut bytes: &[u8]) -> Said {
    let (mut said, mut pairs) = (Said::default(), vec![]);
    while let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() {
        let header = Header::read(*header).unwrap();
        let (content, rest) = rest.split_at(header.content.into());
        bytes = &rest[header.padding.into()..];
        match header.kind {
            Kind::Begin => said.begin.extend_from_slice(content),
            Kind::Params => pairs.extend_from_slice(content),
            Kind::Stdin => said.body.extend_from_slice(content),
            other => panic!("{other:?} in a request"),
        }
    }
    assert!(bytes.is_empty());
    let mut rest = &pairs[..];
    while !rest.is_empty() {
        let [name, value] = [(); 2].map(|()| {
            let (length, after) = rest.split_at(if rest[0] >= 128 { 4 } else { 1 });
            rest = after;
            length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)) & 0x7FFF_FFFF
        });
        let (own, after) = rest.split_at(name);
        let (text, after) = after.split_at(value);
        said.variables.insert(own.to_vec(), text.to_vec());
        rest = after;
    }
    said
}

/// What we say of a request.
fn ours(variables: &BTreeMap<String, String>, body: &[u8]) -> Vec<u8> {
    let mut environment = Environment::default();
    for (name, value) in variables {
        environment.add(&[name.as_bytes()], &[value.as_bytes()]);
    }
    let mut bytes = begin(false).to_vec();
    environment.write(&mut bytes);
    for piece in body.chunks(usize::from(u16::MAX)) {
        bytes.extend(stdin(piece.len() as u16));
        bytes.extend_from_slice(piece);
    }
    bytes.extend(stdin(0));
    bytes
}

/// What the other one says of it, and hears of the answer.
fn theirs(variables: &BTreeMap<String, String>, body: &[u8], answer: &[u8]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let mut written = vec![];
    let params = variables
        .iter()
        .fold(Params::default(), |params, (name, value)| params.custom(name.as_str(), value.as_str()));
    let client = Client::new_tokio(tokio::io::join(answer, &mut written));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let heard = runtime.block_on(client.execute_once(Request::new_tokio(params, body))).unwrap();
    (written, heard.stdout.unwrap_or_default(), heard.stderr.unwrap_or_default())
}

fn record(kind: Kind, content: &[u8], padding: u8) -> Vec<u8> {
    let header = Header { padding, ..Header::new(kind, content.len() as u16) };
    [&header.bytes()[..], content, &vec![0; padding.into()]].concat()
}

fn heard(answer: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut decoder, mut bytes) = (Decoder::default(), BytesMut::from(answer));
    let (mut out, mut err) = (vec![], vec![]);
    loop {
        match decoder.next(&mut bytes).unwrap().expect("the answer has an end") {
            Event::Stdout(piece) => out.extend_from_slice(&piece),
            Event::Stderr(piece) => err.extend_from_slice(&piece),
            Event::End(end) => {
                assert_eq!(end, End::Complete { exit: 0 });
                return (out, err);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn both_say_the_same_of_a_request_and_hear_the_same_of_its_answer(
        mut variables in prop::collection::btree_map("[A-Z_]{1,200}", ".{0,300}", 0..20),
        body in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..100),
            prop::collection::vec(any::<u8>(), 65_530..65_540),
        ],
        pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 1..300), any::<u8>()), 1..12),
    ) {
        // What the other one says by itself.
        for own in ["GATEWAY_INTERFACE", "SERVER_PROTOCOL", "SERVER_SOFTWARE"] {
            variables.insert(own.to_owned(), "given".to_owned());
        }
        let mut answer = vec![];
        for (is_out, content, padding) in &pieces {
            answer.extend(record(if *is_out { Kind::Stdout } else { Kind::Stderr }, content, *padding));
        }
        answer.extend(record(Kind::End, &[0; 8], 0));
        let (written, out, err) = theirs(&variables, &body, &answer);
        prop_assert_eq!(said(&ours(&variables, &body)), said(&written));
        prop_assert_eq!(heard(&answer), (out, err));
    }
}
