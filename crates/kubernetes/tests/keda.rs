//! The scaler, asked by a client that others have written.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

use http::uri::PathAndQuery;
use prost::Message;
use std::net::SocketAddr;
use std::time::Duration;
use suimon_kubernetes::Keda;
use suimon_kubernetes::contract::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, SERVICE, ScaledObjectRef,
};
use suimon_params::kubernetes::KedaParams;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};
use tonic_prost::ProstCodec;

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(20);
/// Long enough to see that nothing comes, of something that comes within a millisecond if it does.
const A_MOMENT: Duration = Duration::from_millis(200);

struct Scaler {
    wanted: watch::Sender<Option<u32>>,
    address: SocketAddr,
    running: JoinHandle<()>,
}

async fn scaler(zero: bool) -> Scaler {
    scaler_at("127.0.0.1:0".parse().unwrap(), zero).await
}

async fn scaler_at(listen: SocketAddr, zero: bool) -> Scaler {
    let (wanted, told) = watch::channel(None);
    let keda = Keda::bind(KedaParams { zero, ..KedaParams::at(listen) }).await.unwrap();
    let address = keda.address().unwrap();
    Scaler { wanted, address, running: tokio::spawn(keda.run(told)) }
}

fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy()
}

async fn unary<Question, Answer>(
    channel: &Channel,
    method: &str,
    question: Question,
) -> Result<Answer, Status>
where
    Question: Message + Send + Sync + 'static,
    Answer: Message + Default + Send + Sync + 'static,
{
    let mut client = Grpc::new(channel.clone());
    client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    let path = PathAndQuery::try_from(format!("/{SERVICE}/{method}")).unwrap();
    let codec = ProstCodec::<Question, Answer>::default();
    timeout(LONG, client.unary(tonic::Request::new(question), path, codec))
        .await
        .expect("an answer")
        .map(tonic::Response::into_inner)
}

async fn activity(channel: &Channel) -> Streaming<IsActiveResponse> {
    let mut client = Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let path = PathAndQuery::try_from(format!("/{SERVICE}/StreamIsActive")).unwrap();
    let codec = ProstCodec::<ScaledObjectRef, IsActiveResponse>::default();
    let question = tonic::Request::new(ScaledObjectRef::default());
    client.server_streaming(question, path, codec).await.unwrap().into_inner()
}

fn metric(name: &str) -> GetMetricsRequest {
    GetMetricsRequest { scaled_object_ref: None, metric_name: name.to_string() }
}

/// Asks until the number has arrived, which is a moment after it was told.
async fn value(channel: &Channel) -> f64 {
    timeout(LONG, async {
        loop {
            match unary::<_, GetMetricsResponse>(channel, "GetMetrics", metric("suimon-nodes-wanted")).await {
                Ok(answer) => return answer.metric_values[0].metric_value_float,
                Err(status) => assert_eq!(status.code(), Code::Unavailable, "{status}"),
            }
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("a number")
}

#[tokio::test]
async fn the_metric_is_the_wanted_number_for_one_replica_each() {
    let scaler = scaler(false).await;
    let channel = channel(scaler.address);
    let specs: GetMetricSpecResponse =
        unary(&channel, "GetMetricSpec", ScaledObjectRef::default()).await.unwrap();
    assert_eq!(specs.metric_specs.len(), 1);
    assert_eq!(specs.metric_specs[0].metric_name, "suimon-nodes-wanted");
    assert_eq!((specs.metric_specs[0].target_size, specs.metric_specs[0].target_size_float), (1, 1.0));

    scaler.wanted.send(Some(7)).unwrap();
    assert!((value(&channel).await - 7.0).abs() < f64::EPSILON);
}

#[tokio::test]
async fn before_a_number_is_known_nothing_is_said_of_it() {
    let scaler = scaler(true).await;
    let channel = channel(scaler.address);
    let metric = unary::<_, GetMetricsResponse>(&channel, "GetMetrics", metric("suimon-nodes-wanted")).await;
    let active = unary::<_, IsActiveResponse>(&channel, "IsActive", ScaledObjectRef::default()).await;
    assert_eq!(metric.unwrap_err().code(), Code::Unavailable);
    assert_eq!(active.unwrap_err().code(), Code::Unavailable);
    let mut news = activity(&channel).await;
    assert!(timeout(A_MOMENT, news.message()).await.is_err());
    scaler.wanted.send(Some(1)).unwrap();
    assert!(timeout(LONG, news.message()).await.unwrap().unwrap().unwrap().result);
}

#[tokio::test]
async fn a_metric_or_a_method_that_is_not_there_is_said_to_be_missing() {
    let scaler = scaler(false).await;
    let channel = channel(scaler.address);
    scaler.wanted.send(Some(2)).unwrap();
    let other = unary::<_, GetMetricsResponse>(&channel, "GetMetrics", metric("s0-nodes")).await.unwrap_err();
    assert_eq!(other.code(), Code::NotFound);
    assert!(other.message().contains("\"s0-nodes\", only \"suimon-nodes-wanted\""), "{other}");
    let method = unary::<_, IsActiveResponse>(&channel, "StreamMetricSpec", ScaledObjectRef::default()).await;
    assert_eq!(method.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn the_stream_stays_open_and_tells_each_change() {
    let scaler = scaler(true).await;
    let channel = channel(scaler.address);
    scaler.wanted.send(Some(3)).unwrap();
    let mut news = activity(&channel).await;
    let mut next = async || timeout(LONG, news.message()).await.unwrap().unwrap().unwrap().result;
    assert!(next().await);
    // A number among others is no change.
    scaler.wanted.send(Some(4)).unwrap();
    while value(&channel).await < 4.0 {}
    scaler.wanted.send(Some(0)).unwrap();
    assert!(!next().await);
    scaler.wanted.send(Some(1)).unwrap();
    assert!(next().await);
}

#[tokio::test]
async fn the_last_node_stays_where_nobody_asked_for_none() {
    let scaler = scaler(false).await;
    let channel = channel(scaler.address);
    scaler.wanted.send(Some(0)).unwrap();
    assert!((value(&channel).await - 1.0).abs() < f64::EPSILON);
    let active: IsActiveResponse = unary(&channel, "IsActive", ScaledObjectRef::default()).await.unwrap();
    assert!(active.result);
}

#[tokio::test]
async fn a_client_comes_back_to_a_scaler_that_was_started_anew() {
    let first = scaler(false).await;
    let channel = channel(first.address);
    first.wanted.send(Some(3)).unwrap();
    assert!((value(&channel).await - 3.0).abs() < f64::EPSILON);
    let mut news = activity(&channel).await;
    assert!(news.message().await.unwrap().unwrap().result);

    drop(first.wanted);
    first.running.await.unwrap();
    // Its end is an error or an end of the stream, never silence.
    let _ = timeout(LONG, news.message()).await.expect("an end");

    let second = scaler_at(first.address, false).await;
    second.wanted.send(Some(5)).unwrap();
    assert!((value(&channel).await - 5.0).abs() < f64::EPSILON);
    let mut news = activity(&channel).await;
    assert!(news.message().await.unwrap().unwrap().result);
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_and_the_next_one_is_answered() {
    let scaler = scaler(false).await;
    let channel = channel(scaler.address);
    scaler.wanted.send(Some(2)).unwrap();
    let large = ScaledObjectRef { name: "x".repeat(1 << 20), ..ScaledObjectRef::default() };
    let refused = unary::<_, IsActiveResponse>(&channel, "IsActive", large).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    assert!((value(&channel).await - 2.0).abs() < f64::EPSILON);
}
