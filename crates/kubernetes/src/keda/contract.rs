//! The messages of KEDA's contract for external scalers, `externalscaler.proto` (package `externalscaler`).

use std::collections::HashMap;

/// The service's full name; methods are `/SERVICE/METHOD`.
pub const SERVICE: &str = "externalscaler.ExternalScaler";

/// Which ScaledObject asks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScaledObjectRef {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its namespace.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// What its trigger's `metadata` says.
    #[prost(map = "string, string", tag = "3")]
    pub scaler_metadata: HashMap<String, String>,
}

/// Whether any node is wanted.
#[derive(Clone, PartialEq, prost::Message)]
pub struct IsActiveResponse {
    /// False: the last one may go.
    #[prost(bool, tag = "1")]
    pub result: bool,
}

/// The metrics that there are.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricSpecResponse {
    /// Each with its target.
    #[prost(message, repeated, tag = "1")]
    pub metric_specs: Vec<MetricSpec>,
}

/// A metric, and how much of it one replica is for.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricSpec {
    /// Its name.
    #[prost(string, tag = "1")]
    pub metric_name: String,
    /// The target; for versions of KEDA before 2.17.
    #[prost(int64, tag = "2")]
    pub target_size: i64,
    /// The target; read first, where it is known.
    #[prost(double, tag = "3")]
    pub target_size_float: f64,
}

/// Asks for a metric.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricsRequest {
    /// Who asks.
    #[prost(message, optional, tag = "1")]
    pub scaled_object_ref: Option<ScaledObjectRef>,
    /// Which one.
    #[prost(string, tag = "2")]
    pub metric_name: String,
}

/// What the metric is now.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricsResponse {
    /// Its values.
    #[prost(message, repeated, tag = "1")]
    pub metric_values: Vec<MetricValue>,
}

/// A value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricValue {
    /// Of which metric.
    #[prost(string, tag = "1")]
    pub metric_name: String,
    /// The value; for versions of KEDA before 2.17.
    #[prost(int64, tag = "2")]
    pub metric_value: i64,
    /// The value; read first, where it is known.
    #[prost(double, tag = "3")]
    pub metric_value_float: f64,
}
