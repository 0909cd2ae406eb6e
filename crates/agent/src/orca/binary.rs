//! The protobuf message in base64.

use super::{BadOrca, Field, Map, OrcaReport};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Reads with and without padding, writes with it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Number of the field `rps`.
const RPS: u64 = 3;
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;
/// The highest number of a field.
const FIELD_MAX: u64 = (1 << 29) - 1;

pub(super) fn read(base64: &[u8]) -> Result<OrcaReport, BadOrca> {
    let bytes = BASE64.decode(base64).map_err(|_| BadOrca::Malformed)?;
    let mut report = OrcaReport::default();
    let mut rest = bytes.as_slice();
    while let Some((number, value)) = next(&mut rest)? {
        let field = Field::ALL.into_iter().find(|field| field.number() == number);
        let map = Map::ALL.into_iter().find(|map| map.number() == number);
        match (field, map, value) {
            (Some(field), _, Wire::Fixed64(bits)) => report.set(field, f64::from_bits(bits))?,
            (_, Some(map), Wire::Bytes(entry)) => {
                let (name, value) = read_entry(entry)?;
                // In a map the last of a name counts.
                report.name(map, name, value)?;
            }
            (_, _, Wire::Varint(count)) if number == RPS => report.rps = count,
            // Another field, or one of these in another form, which is the same to a reader.
            _ => {}
        }
    }
    Ok(report)
}

fn read_entry(mut entry: &[u8]) -> Result<(&str, f64), BadOrca> {
    let (mut name, mut value) = ("", 0.0);
    while let Some((number, wire)) = next(&mut entry)? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => name = std::str::from_utf8(bytes).map_err(|_| BadOrca::Malformed)?,
            (2, Wire::Fixed64(bits)) => value = f64::from_bits(bits),
            _ => {}
        }
    }
    Ok((name, value))
}

/// What stands behind the number of a field.
enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// Takes the next field; `None`: there is no more.
fn next<'a>(rest: &mut &'a [u8]) -> Result<Option<(u64, Wire<'a>)>, BadOrca> {
    if rest.is_empty() {
        return Ok(None);
    }
    let tag = varint(rest)?;
    let number = tag >> 3;
    if !(1..=FIELD_MAX).contains(&number) {
        return Err(BadOrca::Malformed);
    }
    let wire = match tag & 7 {
        VARINT => Wire::Varint(varint(rest)?),
        FIXED64 => Wire::Fixed64(take(rest, 8)?.iter().rfold(0, |bits, byte| bits << 8 | u64::from(*byte))),
        BYTES => {
            let length = usize::try_from(varint(rest)?).map_err(|_| BadOrca::Malformed)?;
            Wire::Bytes(take(rest, length)?)
        }
        FIXED32 => {
            take(rest, 4)?;
            Wire::Fixed32
        }
        // Groups, which the third version of protobuf does not have.
        _ => return Err(BadOrca::Malformed),
    };
    Ok(Some((number, wire)))
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], BadOrca> {
    let (taken, behind) = rest.split_at_checked(count).ok_or(BadOrca::Malformed)?;
    *rest = behind;
    Ok(taken)
}

fn varint(rest: &mut &[u8]) -> Result<u64, BadOrca> {
    let mut number: u64 = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return Err(BadOrca::Malformed);
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(BadOrca::Malformed)
}

pub(super) fn write(report: &OrcaReport) -> String {
    let mut bytes = Vec::new();
    for field in Field::ALL {
        let value = report.field(field);
        if value > 0.0 {
            write_double(&mut bytes, field.number(), value);
        }
    }
    if report.rps > 0 {
        write_varint(&mut bytes, RPS << 3 | VARINT);
        write_varint(&mut bytes, report.rps);
    }
    for map in Map::ALL {
        for (name, value) in report.map(map) {
            let mut entry = Vec::new();
            write_bytes(&mut entry, 1, name.as_bytes());
            write_double(&mut entry, 2, *value);
            write_bytes(&mut bytes, map.number(), &entry);
        }
    }
    BASE64.encode(bytes)
}

fn write_double(bytes: &mut Vec<u8>, number: u64, value: f64) {
    write_varint(bytes, number << 3 | FIXED64);
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn write_bytes(bytes: &mut Vec<u8>, number: u64, content: &[u8]) {
    write_varint(bytes, number << 3 | BYTES);
    write_varint(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}

fn write_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
