use super::Change::{Gone, Stands};
use super::Standing::{Leaving, Ready, Unready};
use super::*;
use serde_json::{Value, json};

fn endpoint(ip: &str, pod: &str, conditions: &Value) -> Value {
    json!({ "addresses": [ip], "conditions": conditions, "targetRef": { "kind": "Pod", "uid": pod } })
}

fn ready(ip: &str, pod: &str) -> Value {
    endpoint(ip, pod, &json!({ "ready": true, "serving": true, "terminating": false }))
}

fn slice(family: &str, endpoints: &[Value]) -> Slice {
    let slice = json!({
        "addressType": family, "metadata": {}, "endpoints": endpoints,
        "ports": [{ "name": "http", "port": 8080 }, { "name": "metrics", "port": 9090 }],
    });
    Slice::read(&serde_json::from_value(slice).unwrap(), "http")
}

fn at(ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().unwrap(), 8080)
}

#[test]
fn nodes_come_and_go_with_their_slices() {
    let mut directory = Directory::default();
    let two = slice("IPv4", &[ready("10.0.0.1", "a"), ready("10.0.0.2", "b")]);
    assert_eq!(directory.put("x", two), [Stands(at("10.0.0.1"), Ready), Stands(at("10.0.0.2"), Ready)]);
    let one = slice("IPv4", &[ready("10.0.0.2", "b")]);
    assert_eq!(directory.put("x", one.clone()), [Gone(at("10.0.0.1"))]);
    assert_eq!(directory.put("x", one), []);
    assert_eq!(directory.remove("x"), [Gone(at("10.0.0.2"))]);
}

#[test]
fn a_list_after_a_gap_tells_only_what_has_changed() {
    let mut directory = Directory::default();
    directory.put("x", slice("IPv4", &[ready("10.0.0.1", "a"), ready("10.0.0.2", "b")]));
    let now = slice("IPv4", &[ready("10.0.0.2", "b"), ready("10.0.0.3", "c")]);
    assert_eq!(
        directory.replace([("y".to_string(), now)]),
        [Gone(at("10.0.0.1")), Stands(at("10.0.0.3"), Ready)]
    );
}

#[test]
fn an_ending_pod_leaves_whether_it_serves_or_not() {
    for serving in [true, false] {
        let mut directory = Directory::default();
        directory.put("x", slice("IPv4", &[ready("10.0.0.1", "a")]));
        let ending = json!({ "ready": false, "serving": serving, "terminating": true });
        let ending = slice("IPv4", &[endpoint("10.0.0.1", "a", &ending)]);
        assert_eq!(directory.put("x", ending), [Stands(at("10.0.0.1"), Leaving)]);
        assert_eq!(directory.put("x", slice("IPv4", &[])), [Gone(at("10.0.0.1"))]);
    }
}

#[test]
fn a_pod_that_is_not_ready_yet_is_no_node_and_one_that_is_not_any_more_keeps_what_it_has() {
    let unready = || json!({ "ready": false, "serving": false, "terminating": false });
    let mut directory = Directory::default();
    assert_eq!(directory.put("x", slice("IPv4", &[endpoint("10.0.0.1", "a", &unready())])), []);
    assert_eq!(directory.put("x", slice("IPv4", &[ready("10.0.0.1", "a")])), [Stands(at("10.0.0.1"), Ready)]);
    let now = slice("IPv4", &[endpoint("10.0.0.1", "a", &unready())]);
    assert_eq!(directory.put("x", now), [Stands(at("10.0.0.1"), Unready)]);
    assert_eq!(directory.put("x", slice("IPv4", &[ready("10.0.0.1", "a")])), [Stands(at("10.0.0.1"), Ready)]);
}

#[test]
fn what_is_not_said_is_ready() {
    let mut directory = Directory::default();
    let silent = slice("IPv4", &[json!({ "addresses": ["10.0.0.1"] })]);
    assert_eq!(directory.put("x", silent), [Stands(at("10.0.0.1"), Ready)]);
}

#[test]
fn endpoints_that_are_no_pods_are_told_apart_by_port_too() {
    let of_port = |port: u16| {
        let slice = json!({ "addressType": "IPv4", "metadata": {}, "endpoints": [{ "addresses": ["10.0.0.1"] }],
            "ports": [{ "name": "http", "port": port }] });
        Slice::read(&serde_json::from_value(slice).unwrap(), "http")
    };
    let mut directory = Directory::default();
    directory.put("x", of_port(1));
    let other = SocketAddr::from(([10, 0, 0, 1], 2));
    assert_eq!(directory.put("y", of_port(2)), [Stands(other, Ready)]);
}

#[test]
fn an_endpoint_in_two_slices_is_as_good_as_the_better_says() {
    let mut directory = Directory::default();
    let stale = json!({ "ready": false, "serving": true, "terminating": true });
    directory.put("x", slice("IPv4", &[ready("10.0.0.1", "a")]));
    assert_eq!(directory.put("y", slice("IPv4", &[endpoint("10.0.0.1", "a", &stale)])), []);
    assert_eq!(directory.remove("x"), [Stands(at("10.0.0.1"), Leaving)]);
}

#[test]
fn a_pod_with_two_families_is_one_node() {
    let mut directory = Directory::default();
    directory.put("v6", slice("IPv6", &[ready("fd00::1", "a")]));
    assert_eq!(
        directory.put("v4", slice("IPv4", &[ready("10.0.0.1", "a")])),
        [Gone(at("fd00::1")), Stands(at("10.0.0.1"), Ready)]
    );
}

#[test]
fn an_address_that_another_pod_has_taken_is_another_node() {
    let mut directory = Directory::default();
    directory.put("x", slice("IPv4", &[ready("10.0.0.1", "a")]));
    assert_eq!(
        directory.put("x", slice("IPv4", &[ready("10.0.0.1", "b")])),
        [Gone(at("10.0.0.1")), Stands(at("10.0.0.1"), Ready)]
    );
}

#[test]
fn a_port_is_found_by_name_by_number_or_alone() {
    let two = json!({ "addressType": "IPv4", "metadata": {}, "endpoints": [ready("10.0.0.1", "a")],
        "ports": [{ "name": "http", "port": 8080 }, { "name": "metrics", "port": 9090 }] });
    let two: EndpointSlice = serde_json::from_value(two).unwrap();
    let port = |name| Slice::read(&two, name).endpoints.first().map(|node| node.address.port());
    assert_eq!((port("http"), port("9090"), port("")), (Some(8080), Some(9090), None));

    let one = json!({ "addressType": "IPv4", "metadata": {}, "endpoints": [ready("10.0.0.1", "a")],
        "ports": [{ "name": "web", "port": 80 }] });
    let one: EndpointSlice = serde_json::from_value(one).unwrap();
    assert_eq!(Slice::read(&one, "").endpoints[0].address.port(), 80);
}

#[test]
fn a_service_or_a_port_that_is_not_there_is_complained_of() {
    let mut directory = Directory::default();
    assert!(directory.complaint("shop", "http").unwrap().contains("Service shop has no EndpointSlice"));
    let wrong = json!({ "addressType": "IPv4", "metadata": {}, "endpoints": [ready("10.0.0.1", "a")],
        "ports": [{ "name": "web", "port": 80 }] });
    directory.put("x", Slice::read(&serde_json::from_value(wrong).unwrap(), "http"));
    assert!(directory.complaint("shop", "http").unwrap().contains("no port \"http\", only: web"));
    directory.put("x", slice("IPv4", &[ready("10.0.0.1", "a")]));
    assert_eq!(directory.complaint("shop", "http"), None);
}

#[test]
fn nodes_beyond_the_bound_are_left_alone_and_counted() {
    let many = (0..=NODES_MAX).map(|n| ready(&format!("10.0.{}.{}", n / 256, n % 256), &format!("{n}")));
    let mut directory = Directory::default();
    assert_eq!(directory.put("x", slice("IPv4", &many.collect::<Vec<_>>())).len(), NODES_MAX);
    assert!(directory.complaint("shop", "http").unwrap().contains("more than 1000"));
}

#[test]
fn names_are_no_nodes() {
    let mut directory = Directory::default();
    assert_eq!(directory.put("x", slice("FQDN", &[ready("shop.example.com", "a")])), []);
}
