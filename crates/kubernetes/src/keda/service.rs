//! The methods of the scaler.

use super::contract::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, MetricSpec, MetricValue,
    SERVICE, ScaledObjectRef,
};
use super::published::{Published, published};
use futures_util::{Stream, StreamExt, future};
use http::{Request, Response};
use hyper::body::Incoming;
use prost::Message;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tonic::body::Body;
use tonic::server::{Grpc, ServerStreamingService, UnaryService};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

/// Bytes of a request: names and what a trigger's metadata says.
const MESSAGE_MAX: usize = 64 << 10;

/// Whatever is answered, and a stream of it.
type Answers = Pin<Box<dyn Stream<Item = Result<IsActiveResponse, Status>> + Send>>;

/// What all methods answer from.
#[derive(Clone, Debug)]
pub(crate) struct Scaler {
    /// The name of the metric.
    pub(crate) metric: Arc<str>,
    /// Whether no node may be wanted.
    pub(crate) zero: bool,
    /// The number, once it is known.
    pub(crate) wanted: watch::Receiver<Option<u32>>,
}

impl Scaler {
    /// Answers one call.
    pub(crate) async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        let method = request.uri().path().strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE));
        match method {
            Some("/IsActive") => grpc::<_, ScaledObjectRef>().unary(IsActive(self), request).await,
            Some("/StreamIsActive") => {
                grpc::<_, ScaledObjectRef>().server_streaming(StreamIsActive(self), request).await
            }
            Some("/GetMetricSpec") => grpc::<_, ScaledObjectRef>().unary(GetMetricSpec(self), request).await,
            Some("/GetMetrics") => grpc::<_, GetMetricsRequest>().unary(GetMetrics(self), request).await,
            // `StreamMetricSpec` among them: the target never changes.
            _ => Status::new(Code::Unimplemented, "this scaler has no such method").into_http(),
        }
    }

    fn now(&self) -> Result<Published, Status> {
        let wanted = *self.wanted.borrow();
        let unknown = || Status::unavailable("it is not known yet how many nodes are wanted");
        wanted.map(|wanted| published(wanted, self.zero)).ok_or_else(unknown)
    }
}

fn grpc<Answer, Question>() -> Grpc<ProstCodec<Answer, Question>>
where
    Answer: Message + Send + 'static,
    Question: Message + Default + Send + 'static,
{
    Grpc::new(ProstCodec::default()).max_decoding_message_size(MESSAGE_MAX)
}

struct IsActive(Scaler);

impl UnaryService<ScaledObjectRef> for IsActive {
    type Response = IsActiveResponse;
    type Future = future::Ready<Result<tonic::Response<IsActiveResponse>, Status>>;

    fn call(&mut self, _: tonic::Request<ScaledObjectRef>) -> Self::Future {
        let now = self.0.now();
        future::ready(now.map(|now| tonic::Response::new(IsActiveResponse { result: now.is_active })))
    }
}

struct StreamIsActive(Scaler);

impl ServerStreamingService<ScaledObjectRef> for StreamIsActive {
    type Response = IsActiveResponse;
    type ResponseStream = Answers;
    type Future = future::Ready<Result<tonic::Response<Answers>, Status>>;

    /// Says how it is, and each change of it; nothing before it is known.
    fn call(&mut self, _: tonic::Request<ScaledObjectRef>) -> Self::Future {
        let zero = self.0.zero;
        let mut said = None;
        let changes = WatchStream::new(self.0.wanted.clone()).filter_map(move |wanted| {
            let is_active = wanted.map(|wanted| published(wanted, zero).is_active);
            let news = is_active.filter(|_| said != is_active);
            said = is_active.or(said);
            future::ready(news.map(|result| Ok(IsActiveResponse { result })))
        });
        future::ready(Ok(tonic::Response::new(Box::pin(changes))))
    }
}

struct GetMetricSpec(Scaler);

impl UnaryService<ScaledObjectRef> for GetMetricSpec {
    type Response = GetMetricSpecResponse;
    type Future = future::Ready<Result<tonic::Response<GetMetricSpecResponse>, Status>>;

    fn call(&mut self, _: tonic::Request<ScaledObjectRef>) -> Self::Future {
        let metric_name = self.0.metric.to_string();
        let spec = MetricSpec { metric_name, target_size: 1, target_size_float: 1.0 };
        future::ready(Ok(tonic::Response::new(GetMetricSpecResponse { metric_specs: vec![spec] })))
    }
}

struct GetMetrics(Scaler);

impl UnaryService<GetMetricsRequest> for GetMetrics {
    type Response = GetMetricsResponse;
    type Future = future::Ready<Result<tonic::Response<GetMetricsResponse>, Status>>;

    fn call(&mut self, request: tonic::Request<GetMetricsRequest>) -> Self::Future {
        let name = &request.get_ref().metric_name;
        let metric = &self.0.metric;
        if **name != **metric {
            let words = format!("there is no metric {name:?}, only {metric:?}");
            return future::ready(Err(Status::not_found(words)));
        }
        future::ready(self.0.now().map(|now| {
            tonic::Response::new(GetMetricsResponse {
                metric_values: vec![MetricValue {
                    metric_name: metric.to_string(),
                    metric_value: i64::from(now.value),
                    metric_value_float: f64::from(now.value),
                }],
            })
        }))
    }
}
