//! The files a recording leaves behind, and the files it does not touch.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use suimon_gate::{Arrival, Membership, Params, RouteMode};
use suimon_model::{RouteId, SessionId};
use suimon_record::{Part, Segment};

/// A gate and its recording, under one clock.
struct Recorded {
    gate: Gate,
    recorder: Recorder,
    names: RecordNames,
    now: Instant,
}

fn recording(folder: &Path, bytes_max: u64) -> Recording {
    Recording { file: folder.join("gate.rec"), bytes_max }
}

fn begin(recording: &Recording) -> Result<Recorded, RecordError> {
    let now = Instant::from_nanos(5);
    let mut gate = Gate::new(Params::default(), now);
    gate.declare_route(now, RouteMode::Enforce);
    gate.declare_kind(now, suimon_gate::KindParams::default());
    let names = RecordNames { routes: vec!["other".to_owned()], kinds: vec!["visit".to_owned()] };
    let recorder = Recorder::begin(recording, &gate, &names, now)?;
    Ok(Recorded { gate, recorder, names, now })
}

impl Recorded {
    /// One request of a session of its own, from its coming to its end.
    fn request(&mut self, session: u64) {
        self.now += Duration::from_micros(300);
        let kind = suimon_model::KindId(0);
        let member = Membership::Member { kind, session: SessionId(session), leased: true, ends: false };
        let arrival = Arrival { route: RouteId(0), session: Some(member) };
        self.recorder.push(self.now, &Event::Arrival(arrival));
        let request = self.gate.handle_arrival(self.now, arrival);
        let Some(output) = self.gate.poll_output() else { panic!("an idle gate starts at once") };
        self.recorder.answer(&output);
        let Output::Start(start) = output else { panic!("a member is not refused") };
        let ending = suimon_model::Outcome::Completed;
        self.recorder.push(self.now, &Event::End(request, ending));
        self.gate.handle_end(self.now, start.permit, ending);
    }

    fn hand_on(&mut self) -> Result<(), Ended> {
        self.recorder.hand_on(&self.gate, &self.names, self.now)
    }

    /// Hands on no quicker than is written: this is far more than traffic would bring.
    fn hand_on_in_time(&mut self) {
        self.hand_on().unwrap();
        self.wait_for_the_disk();
    }

    /// Waits until a buffer comes back, which is then filled again.
    fn wait_for_the_disk(&mut self) {
        let buffer = self.recorder.spare.recv().unwrap();
        assert!(buffer.capacity() >= BLOCK_FULL);
    }

    fn end(self) {
        self.recorder.end(self.gate.trace());
    }
}

/// Returns every file of the recording that can be read, the oldest first, with its header, its
/// events and its ending.
fn read(recording: &Recording) -> Vec<(u64, Vec<u8>, usize, SegmentEnd)> {
    let folder = recording.file.parent().unwrap();
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut segments: Vec<_> = files
        .iter()
        .map(|path| {
            let bytes = fs::read(path).unwrap();
            let segment = Segment::read(&bytes).unwrap();
            let (mut events, mut ending) = (0, None);
            for part in segment.parts() {
                match part.unwrap() {
                    Part::Block(block) => events += block.events().map(Result::unwrap).count(),
                    Part::End(end) => ending = Some(end),
                }
            }
            (segment.header.segment, segment.snapshot, events, ending.unwrap())
        })
        .collect();
    segments.sort_by_key(|(number, ..)| *number);
    segments
}

#[test]
fn what_is_handed_on_is_in_a_file_for_the_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recording(folder.path(), Recording::BYTES_MIN);
    let mut recorded = begin(&recording).unwrap();
    recorded.request(1);
    assert!(!recorded.recorder.is_due(recorded.now), "a request alone is no reason to write");
    recorded.now += HAND_ON_AFTER;
    assert!(recorded.recorder.is_due(recorded.now));
    recorded.hand_on().unwrap();
    recorded.request(2);
    recorded.end();
    let segments = read(&recording);
    assert_eq!(segments.iter().map(|s| (s.0, s.2, s.3)).collect::<Vec<_>>(), [(1, 4, SegmentEnd::Closed)]);
    assert_eq!(fs::metadata(&recording.file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn files_follow_one_another_and_stay_within_their_bound() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recording(folder.path(), Recording::BYTES_MIN);
    let mut recorded = begin(&recording).unwrap();
    let mut session = 0;
    while recorded.recorder.header.segment < 12 {
        while !recorded.recorder.encoder.is_full() {
            session += 1;
            recorded.request(session % 100);
        }
        recorded.hand_on_in_time();
    }
    let last_state = recorded.gate.save().unwrap();
    recorded.end();
    let segments = read(&recording);
    let numbers: Vec<u64> = segments.iter().map(|(number, ..)| *number).collect();
    let first = numbers[0];
    assert!(first > 1, "the oldest were removed: {numbers:?}");
    assert_eq!(numbers, (first..=12).collect::<Vec<_>>());
    let (last, before) = segments.split_last().unwrap();
    assert!(before.iter().all(|segment| segment.3 == SegmentEnd::Continued && segment.2 > 1000));
    assert_eq!((&last.1, last.3), (&last_state, SegmentEnd::Closed), "the last begins with the gate's state");
    let total: u64 = fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
    assert!(total <= recording.bytes_max, "{total} bytes");
}

#[test]
fn another_run_goes_on_beside_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recording(folder.path(), Recording::BYTES_MIN);
    begin(&recording).unwrap().end();
    begin(&recording).unwrap().end();
    assert_eq!(read(&recording).iter().map(|segment| segment.0).collect::<Vec<_>>(), [1, 2]);
    // Killed in the middle of its first block: still ours, and set aside as it is.
    fs::write(&recording.file, &fs::read(&recording.file).unwrap()[..12]).unwrap();
    begin(&recording).unwrap().end();
    assert_eq!(fs::read(folder.path().join("gate.rec.000002")).unwrap().len(), 12);
}

#[test]
fn a_file_that_is_something_else_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recording(folder.path(), Recording::BYTES_MIN);
    fs::write(&recording.file, "a letter").unwrap();
    let error = begin(&recording).err().unwrap();
    assert!(
        matches!(error, RecordError::Foreign(_)) && error.to_string().contains("was not touched"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&recording.file).unwrap(), "a letter");

    // Nor one that only has such a name.
    fs::remove_file(&recording.file).unwrap();
    let alike = folder.path().join("gate.rec.000001");
    fs::write(&alike, "another letter").unwrap();
    begin(&recording).unwrap().end();
    let error = begin(&recording).err().unwrap();
    assert!(error.to_string().contains("gate.rec.000001 is in the way"), "{error}");
    assert_eq!(fs::read_to_string(&alike).unwrap(), "another letter");
}

#[test]
fn two_gateways_do_not_write_one_recording() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recording(folder.path(), Recording::BYTES_MIN);
    let first = begin(&recording).unwrap();
    assert!(matches!(begin(&recording), Err(RecordError::InUse(_))));
    first.end();
    begin(&recording).unwrap().end();
}

#[test]
fn a_folder_that_is_not_there_is_said() {
    let recording = recording(Path::new("/no/such/folder"), Recording::BYTES_MIN);
    let error = begin(&recording).err().unwrap();
    assert!(error.to_string().contains("its folder must be there"), "{error}");
}

#[test]
fn a_disk_that_cannot_keep_up_ends_the_recording_and_the_file_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recording(folder.path(), Recording::BYTES_MIN);
    let mut recorded = begin(&recording).unwrap();
    recorded.request(1);
    recorded.hand_on().unwrap();
    let (full, _nobody_takes) = sync_channel(0);
    let to_the_disk = std::mem::replace(&mut recorded.recorder.blocks, full);
    recorded.request(2);
    assert!(recorded.hand_on().is_err(), "nobody waits for the disk");
    drop(to_the_disk);
    recorded.recorder.thread.join().unwrap();
    let segments = read(&recording);
    assert_eq!(segments.iter().map(|s| (s.2, s.3)).collect::<Vec<_>>(), [(2, SegmentEnd::TooSlow)]);
}

#[test]
fn a_state_too_large_for_a_segment_ends_the_recording_and_the_file_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recording(folder.path(), Recording::BYTES_MIN);
    let mut recorded = begin(&recording).unwrap();
    let mut session = 0;
    loop {
        while !recorded.recorder.encoder.is_full() {
            session += 1;
            recorded.request(session);
        }
        if recorded.hand_on().is_err() {
            break;
        }
        recorded.wait_for_the_disk();
    }
    let Recorder { blocks, thread, .. } = recorded.recorder;
    drop(blocks);
    thread.join().unwrap();
    assert_eq!(read(&recording).last().unwrap().3, SegmentEnd::NoSnapshot);
}
