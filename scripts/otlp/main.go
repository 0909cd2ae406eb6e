// Takes spans and metrics as the OpenTelemetry Collector does, by its own receiver, and prints each as a line of JSON.
// Usage: otlp ADDRESS
package main

import (
	"context"
	"encoding/json"
	"log"
	"math"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := json.NewEncoder(os.Stdout)
	taken, err := consumer.NewTraces(func(_ context.Context, traces ptrace.Traces) error {
		return each(traces, out)
	})
	must(err)
	counted, err := consumer.NewMetrics(func(_ context.Context, metrics pmetric.Metrics) error {
		return eachMetric(metrics, out)
	})
	must(err)
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	must(confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": os.Args[1]}},
	}).Unmarshal(config))
	receiver, err := factory.CreateTraces(ctx, receivertest.NewNopSettings(factory.Type()), config, taken)
	must(err)
	numbers, err := factory.CreateMetrics(ctx, receivertest.NewNopSettings(factory.Type()), config, counted)
	must(err)
	must(numbers.Start(ctx, componenttest.NewNopHost()))
	must(receiver.Start(ctx, componenttest.NewNopHost()))
	log.Printf("listening on %s", os.Args[1])
	<-ctx.Done()
	must(receiver.Shutdown(context.Background()))
}

// each prints the spans, as they were understood.
func each(traces ptrace.Traces, out *json.Encoder) error {
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				if err := out.Encode(map[string]any{
					"resource":   resource.Resource().Attributes().AsRaw(),
					"scope":      scope.Scope().Name(),
					"name":       span.Name(),
					"kind":       span.Kind().String(),
					"trace":      span.TraceID().String(),
					"span":       span.SpanID().String(),
					"parent":     span.ParentSpanID().String(),
					"start":      span.StartTimestamp(),
					"end":        span.EndTimestamp(),
					"status":     span.Status().Code().String(),
					"attributes": span.Attributes().AsRaw(),
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// eachMetric prints the metrics, as they were understood.
func eachMetric(metrics pmetric.Metrics, out *json.Encoder) error {
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				line := map[string]any{
					"resource": resource.Resource().Attributes().AsRaw(),
					"metric":   metric.Name(),
					"unit":     metric.Unit(),
					"help":     metric.Description(),
					"type":     metric.Type().String(),
				}
				points := []map[string]any{}
				numbers := func(all pmetric.NumberDataPointSlice) {
					for _, point := range all.All() {
						value := point.DoubleValue()
						if math.IsInf(value, 0) || math.IsNaN(value) {
							continue
						}
						points = append(points, map[string]any{"attributes": point.Attributes().AsRaw(), "value": value})
					}
				}
				switch metric.Type() {
				case pmetric.MetricTypeGauge:
					numbers(metric.Gauge().DataPoints())
				case pmetric.MetricTypeSum:
					line["monotonic"] = metric.Sum().IsMonotonic()
					line["temporality"] = metric.Sum().AggregationTemporality().String()
					numbers(metric.Sum().DataPoints())
				case pmetric.MetricTypeHistogram:
					line["temporality"] = metric.Histogram().AggregationTemporality().String()
					for _, point := range metric.Histogram().DataPoints().All() {
						points = append(points, map[string]any{
							"attributes": point.Attributes().AsRaw(),
							"count":      point.Count(),
							"sum":        point.Sum(),
							"buckets":    point.BucketCounts().AsRaw(),
							"bounds":     point.ExplicitBounds().AsRaw(),
						})
					}
				}
				line["points"] = points
				if err := out.Encode(line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
