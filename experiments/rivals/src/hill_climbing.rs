//! Hill climbing of the .NET thread pool: a small square wave on the limit, whose effect is
//! searched in the throughput.
//!
//! *Law*. The limit is c, the setting; in every other half period it is c + A. The last n samples
//! count, n a multiple of the period 4 and at most 32. W(x) is the component of x at that period,
//! over the mean of x (Goertzel). N is the larger of the throughput's components at the two
//! neighbouring periods 4n/(n+4) and 4n/(n−4), and N̄ its mean with weight 0.01:
//!
//! ```text
//! r    = Re (W(throughput) − 0.15 · W(limit)) / W(limit)               clamped to −1..1          (1)
//! r    ← r · min(1, |W(limit)| / (3 · max(N, N̄)))                      a wave lost in noise moves less  (2)
//! c    ← c + sign(r) · r² · 4/s · T                                    at most 20 a sample       (3)
//! A    = clamp(⌊½ + 6 · c · N̄⌋, 1, 20)                                                          (4)
//! ```
//!
//! T is the length of a sample: at least 10 to 200 ms, drawn once; it lasts until (limit − 1) /
//! ends < 0.15, so that little of it began under another limit. No move up while the processors are
//! used for more than 95 %. At the least limit with r < 0, samples are up to ten times as long.
//!
//! *Signals*: ends per second of the route; processor utilisation. *Units*: requests, seconds.
//! *Limits*: [`bounds`]. *Regimes*: a sample without ends is not over. *Source*: Hellerstein,
//! Morrison & Eilebrecht, "Applying control theory in the real world" (FeBID '08 and '09), and the
//! settings `HillClimbing_*` of the runtime. The pool's injection of threads when nothing moves at
//! all is left out.

use super::per_route::{Batch, Bounds, Sample, SingleLimit};
use std::f64::consts::TAU;
use suimon_model::real::{cos, pow};
use suimon_model::{Instant, Rng, Signals};
use suimon_sim::Utilisation;

/// Samples in a wave, and the most samples that count: eight waves.
const PERIOD: usize = 4;
const HISTORY: usize = 8 * PERIOD;
/// The least gain in throughput per gain in the limit, both relative, that justifies a higher
/// limit.
const BIAS: f64 = 0.15;
/// Ratio of signal to noise at which a move is made in full.
const SIGNAL_TO_NOISE: f64 = 3.0;
/// The exponent of (3).
const GAIN_EXPONENT: f64 = 2.0;
/// The fastest the setting moves, per second and per sample.
const CHANGE_PER_SECOND: f64 = 4.0;
const CHANGE_PER_SAMPLE: f64 = 20.0;
/// The highest amplitude of the wave.
const WAVE_MAX: f64 = 20.0;
/// The weight of the newest noise.
const NOISE_WEIGHT: f64 = 0.01;
/// The share of a sample's ends that may have begun under another limit.
const SAMPLE_ERROR: f64 = 0.15;
/// The least length of a sample is drawn between these, seconds.
const SAMPLE_LOW: f64 = 0.010;
const SAMPLE_HIGH: f64 = 0.200;
/// The processor utilisation above which the setting does not rise.
const BUSY: f64 = 0.95;
/// The most by which a sample is lengthened at the least limit.
const STRETCH: f64 = 10.0;
/// The highest limit: that of the thread pool.
const LIMIT_MAX: u32 = 32_767;
/// The source of the sample length's random numbers.
const SEED: u64 = 0x4849_4C4C;

/// Returns the published limits on a machine of `cores` cores.
pub(super) const fn bounds(cores: u32) -> Bounds {
    Bounds { initial: cores, least: cores, most: LIMIT_MAX }
}

/// The climber of one route.
#[derive(Clone, Debug)]
pub(super) struct HillClimbing {
    bounds: Bounds,
    cpu: Utilisation,
    setting: f64,
    limit: u32,
    samples: u64,
    throughputs: [f64; HISTORY],
    limits: [f64; HISTORY],
    noise: Option<f64>,
    ratio: f64,
    confidence: f64,
    sample: Batch,
    drawn_seconds: f64,
    sample_seconds: f64,
    rng: Rng,
}

impl HillClimbing {
    pub(super) fn new(bounds: Bounds, cpu: Utilisation) -> Self {
        HillClimbing {
            bounds,
            cpu,
            setting: f64::from(bounds.initial),
            limit: bounds.initial,
            samples: 0,
            throughputs: [0.0; HISTORY],
            limits: [0.0; HISTORY],
            noise: None,
            ratio: 0.0,
            confidence: 0.0,
            sample: Batch::default(),
            drawn_seconds: SAMPLE_LOW,
            sample_seconds: SAMPLE_LOW,
            rng: Rng::new(SEED),
        }
    }

    /// Returns whether too many of the sample's ends may have begun under another limit.
    fn blurred(&self) -> bool {
        let ends = f64::from(self.sample.ends);
        self.samples > 0 && f64::from(self.limit - 1) / ends >= SAMPLE_ERROR
    }

    fn on_sample(&mut self, throughput: f64, length: f64) {
        let index = (self.samples % HISTORY as u64) as usize;
        self.throughputs[index] = throughput;
        self.limits[index] = f64::from(self.limit);
        self.samples += 1;
        self.listen();
        let mut step = self.ratio.clamp(-1.0, 1.0) * self.confidence.min(1.0);
        step = step.signum() * pow(step.abs(), GAIN_EXPONENT) * CHANGE_PER_SECOND * length;
        step = step.clamp(-CHANGE_PER_SAMPLE, CHANGE_PER_SAMPLE);
        if step > 0.0 && self.cpu.get() > BUSY {
            step = 0.0;
        }
        let setting = self.setting + step;
        let wave = (0.5 + 2.0 * SIGNAL_TO_NOISE * setting * self.noise.unwrap_or(0.0)).floor();
        let wave = wave.clamp(1.0, WAVE_MAX);
        let most = f64::from(self.bounds.most) - wave;
        self.setting = setting.min(most).max(f64::from(self.bounds.least));
        let crest = self.samples / (PERIOD as u64 / 2) % 2 == 1;
        self.limit = self.bounds.whole(self.setting + if crest { wave } else { 0.0 });
        let stuck = self.ratio < 0.0 && self.limit == self.bounds.least;
        self.sample_seconds = self.drawn_seconds * if stuck { STRETCH * (-self.ratio).min(1.0) } else { 1.0 };
    }

    /// Looks for the wave in the samples: sets ratio and confidence.
    fn listen(&mut self) {
        (self.ratio, self.confidence) = (0.0, 0.0);
        let count = (self.samples - 1).min(HISTORY as u64) as usize / PERIOD * PERIOD;
        if count <= PERIOD {
            return;
        }
        let newest = |values: &[f64; HISTORY]| -> Vec<f64> {
            let first = self.samples - count as u64;
            (first..self.samples).map(|n| values[(n % HISTORY as u64) as usize]).collect()
        };
        let (throughputs, limits) = (newest(&self.throughputs), newest(&self.limits));
        let waves = (count / PERIOD) as f64;
        let period = PERIOD as f64;
        let (Some(heard), Some(sent)) = (component(&throughputs, period), component(&limits, period)) else {
            return;
        };
        let neighbours = [count as f64 / (waves + 1.0), count as f64 / (waves - 1.0)];
        let beside = neighbours.map(|period| component(&throughputs, period).map_or(0.0, Wave::size));
        let noise = beside[0].max(beside[1]);
        let mean = self.noise.map_or(noise, |mean| mean + NOISE_WEIGHT * (noise - mean));
        self.noise = Some(mean);
        let strength = sent.size();
        if strength <= 0.0 {
            return;
        }
        self.ratio = heard.real_part_over(sent) - BIAS;
        let noise = noise.max(mean);
        self.confidence = if noise > 0.0 { strength / noise / SIGNAL_TO_NOISE } else { 1.0 };
    }
}

impl SingleLimit for HillClimbing {
    fn begin(&mut self, now: Instant, stream: u64) {
        self.sample = Batch::new(now);
        self.rng = Rng::stream(SEED, stream);
        self.drawn_seconds = self.rng.between(SAMPLE_LOW, SAMPLE_HIGH);
        self.sample_seconds = self.drawn_seconds;
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn signals(&self) -> Signals {
        Signals::none()
            .with("setting", self.setting)
            .with("ratio", self.ratio)
            .with("confidence", self.confidence)
            .with("noise", self.noise.unwrap_or(0.0))
    }

    fn on_end(&mut self, now: Instant, sample: &Sample) {
        self.sample.fold(sample);
        let length = now.secs_since(self.sample.begin);
        if length < self.sample_seconds || self.blurred() {
            return;
        }
        let throughput = self.sample.throughput(now);
        self.sample = Batch::new(now);
        self.on_sample(throughput, length);
    }
}

/// A wave of one period in a row of numbers, relative to their mean.
#[derive(Clone, Copy, Debug)]
struct Wave {
    real: f64,
    imaginary: f64,
}

impl Wave {
    fn size(self) -> f64 {
        (self.real * self.real + self.imaginary * self.imaginary).sqrt()
    }

    /// Returns the real part of this over `other`, which is not zero.
    fn real_part_over(self, other: Wave) -> f64 {
        (self.real * other.real + self.imaginary * other.imaginary) / (other.size() * other.size())
    }
}

/// Returns the wave of `period` numbers, at least 2, in `values`; `None` if their mean is not above
/// 0. (Goertzel.)
fn component(values: &[f64], period: f64) -> Option<Wave> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    if mean <= 0.0 {
        return None;
    }
    let cosine = cos(TAU / period);
    let sine = (1.0 - cosine * cosine).max(0.0).sqrt();
    let (mut last, mut before) = (0.0, 0.0);
    for value in values {
        (last, before) = (2.0 * cosine * last - before + value / mean, last);
    }
    let count = values.len() as f64;
    Some(Wave { real: (last - before * cosine) / count, imaginary: before * sine / count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Bench;

    /// Service time on a host whose throughput peaks at 20 at once (universal scalability law).
    fn peak_at_twenty(n: u32) -> f64 {
        let n = f64::from(n);
        0.02 * (1.0 + 0.05 * (n - 1.0) + n * (n - 1.0) * 0.95 / 400.0)
    }

    fn climber(initial: u32, cpu: &Utilisation) -> HillClimbing {
        HillClimbing::new(Bounds { initial, ..bounds(2) }, cpu.clone())
    }

    #[test]
    fn a_square_wave_is_found_and_a_neighbouring_one_is_not() {
        let wave: Vec<f64> = (0..32).map(|n| if n / 2 % 2 == 1 { 12.0 } else { 10.0 }).collect();
        let found = component(&wave, 4.0).expect("they are something on average");
        // ± 1/11 at period 4 has the component √2/2 of that.
        assert!((found.size() - 0.5_f64.sqrt() / 11.0).abs() < 1e-9, "{found:?}");
        assert!(component(&wave, 32.0 / 7.0).expect("as before").size() < 1e-9);
        assert!((found.real_part_over(found) - 1.0).abs() < 1e-9);
        assert!(component(&[0.0; 8], 4.0).is_none());
    }

    #[test]
    fn it_climbs_a_concave_curve_and_stops_short_of_its_peak() {
        let mut bench = Bench::new(climber(2, &Utilisation::default()), peak_at_twenty);
        let limits = bench.saturated(300.0);
        let late = &limits[limits.len() / 2..];
        // The slope falls to 0.15 (both relative) at 13; the wave adds its amplitude.
        assert!(late.iter().all(|m| (7..=22).contains(m)), "{late:?}");
    }

    #[test]
    fn it_comes_down_from_beyond_the_peak() {
        let mut bench = Bench::new(climber(60, &Utilisation::default()), peak_at_twenty);
        let limits = bench.saturated(300.0);
        assert!(limits[limits.len() - 100..].iter().all(|m| *m < 40), "{limits:?}");
    }

    #[test]
    fn it_does_not_climb_while_the_processors_are_busy() {
        let cpu = Utilisation::default();
        cpu.set(0.99);
        let mut bench = Bench::new(climber(4, &cpu), peak_at_twenty);
        let limits = bench.saturated(60.0);
        assert!(limits.iter().all(|m| *m <= 5), "the setting and its wave of one: {limits:?}");
    }

    #[test]
    fn a_sample_goes_on_until_its_edges_are_little_of_it() {
        let mut law = climber(4, &Utilisation::default());
        law.samples = 1;
        law.sample.ends = 20;
        assert!(law.blurred(), "3 of 20 are 15 %");
        law.sample.ends = 21;
        assert!(!law.blurred());
    }
}
