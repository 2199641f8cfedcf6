//! Settings of all streams together, and the share of each.

use crate::level::{Level, MAX_STREAMS};
use crate::setting::Setting;
use crate::test::{WINDOWS, bytes_of};
use crate::test_error::TestError;
use crate::traffic::Traffic;
use crate::value::Hosts;
use topology::PathSpec;
use units::{BitRate, ByteCount};

/// What a test sets for all its streams together, of all clients, and what it sets for each.
#[derive(Debug, Default)]
pub(crate) struct Totals<'a> {
    streams: Total<'a>,
    window: Total<'a>,
    bitrate: Total<'a>,
}

/// A setting that a total and a value of each stream exclude one another in.
#[derive(Debug, Default)]
struct Total<'a> {
    level: Option<&'a Level>,
    is_of_each: bool,
}

impl<'a> Totals<'a> {
    /// Takes a total, and notes what is set of each stream; false if the test needs it, too.
    pub(crate) fn takes(&mut self, setting: &Setting, level: &'a Level) -> bool {
        let (total, is_of_each) = match setting {
            Setting::OfFlow(_, setting) => return self.takes(setting, level),
            Setting::TotalStreams => (&mut self.streams, false),
            Setting::TotalWindow => (&mut self.window, false),
            Setting::TotalBitrate => (&mut self.bitrate, false),
            Setting::Streams => (&mut self.streams, true),
            Setting::Window => (&mut self.window, true),
            Setting::Bitrate => (&mut self.bitrate, true),
            _ => return false,
        };
        if is_of_each {
            total.is_of_each = true;
        } else {
            total.level = Some(level);
        }
        !is_of_each
    }

    /// What they contradict.
    ///
    /// # Errors
    /// A total stands beside the same of each stream, or there are several flows.
    pub(crate) fn check(&self, flows: usize) -> Result<(), TestError> {
        let named = [
            (&self.streams, "total_streams", "streams"),
            (&self.window, "total_window", "window"),
            (&self.bitrate, "total_bitrate", "bitrate"),
        ];
        for (setting, total, each) in named {
            if setting.level.is_some() && setting.is_of_each {
                return Err(TestError::TotalAndEach { total, each });
            }
            if setting.level.is_some() && flows > 1 {
                return Err(TestError::TotalOfFlows { total, flows });
            }
        }
        Ok(())
    }

    /// Gives the flow of each client its share of the streams and of the rate, and returns the
    /// window of each stream, if there is one. Shares of windows and rates are rounded down to whole
    /// bytes and bit/s.
    ///
    /// # Errors
    /// A total cannot be divided; the error says which ones can.
    pub(crate) fn share(
        &self,
        flows: &mut [Traffic],
        hosts: Hosts,
        path: &PathSpec,
    ) -> Result<Option<ByteCount>, TestError> {
        let clients = u32::from(hosts.clients);
        let [flow] = flows else { return Ok(None) };
        if let Some(level) = self.streams.level {
            let each = level.number().unwrap_or(0.0) / f64::from(clients);
            if each.fract() != 0.0 || !(1.0..=MAX_STREAMS).contains(&each) {
                return Err(TestError::TotalStreams {
                    total: level.text.clone(),
                    clients: hosts.clients,
                    most: clients * MAX_STREAMS as u32,
                });
            }
            flow.streams = each as u32;
        }
        let streams = flow.streams * clients;
        if let Some(level) = self.bitrate.level {
            let each = (level.number().unwrap_or(0.0) / f64::from(streams)).floor();
            if each < 1.0 {
                return Err(TestError::TotalBitrate { total: level.text.clone(), streams });
            }
            flow.bitrate = Some(BitRate::from_bps_f64(each));
        }
        let Some(level) = self.window.level else { return Ok(None) };
        let each = (bytes_of(level, path)? / f64::from(streams)).floor();
        if WINDOWS.contains(&each) {
            return Ok(Some(ByteCount::from_f64(each)));
        }
        let of_all = |each: &f64| ByteCount::from_f64(each * f64::from(streams));
        Err(TestError::TotalWindow {
            total: level.text.clone(),
            each: ByteCount::from_f64(each),
            streams,
            least: of_all(WINDOWS.start()),
            most: of_all(WINDOWS.end()),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::test::Test;
    use units::ByteCount;

    fn plan(factors: &str, traffic: &str) -> Result<Plan, String> {
        let text = format!(
            "question = \"?\"\n[path]\nrate = \"600mbit\"\nrtt = \"100ms\"\n[factors]\n{factors}\n\
             [traffic]\nduration = \"2s\"\n{traffic}"
        );
        Plan::parse(&text).map_err(|error| error.problem)
    }

    fn tests(plan: &Plan) -> Vec<Test> {
        (0..plan.cells()).map(|cell| plan.test(&plan.cell(cell)).unwrap()).collect()
    }

    #[test]
    fn each_client_has_its_share_of_the_streams_and_each_stream_of_the_window() {
        let factors = "total_window = [\"1MiB\", \"8MiB\"]\ntotal_streams = [4, 12]";
        let plan = plan(factors, "hosts = \"4x2\"").unwrap();
        let shares: Vec<(u32, u64)> = tests(&plan)
            .iter()
            .map(|test| (test.flows[0].streams, test.window.unwrap().bytes()))
            .collect();
        assert_eq!(shares, [(1, 262_144), (3, 87_381), (1, 2_097_152), (3, 699_050)]);
        assert_eq!(plan.label(&plan.cell(1)), "total_window=1MiB total_streams=12");
        // 1 MiB in 100 ms, whatever the number of streams.
        let predicted: Vec<f64> =
            tests(&plan).iter().map(|test| test.predict().unwrap().rate.as_f64() / 1e6).collect();
        assert!((predicted[0] - 83.886).abs() < 0.001 && (predicted[1] - 83.886).abs() < 0.001);
        assert!((predicted[3] - 579.2).abs() < 0.1, "{predicted:?}");
    }

    #[test]
    fn a_rate_is_that_of_all_streams() {
        let udp = "protocol = \"udp\"\nblock = 1470\nhosts = \"2x2\"";
        let plan = plan("total_bitrate = [\"550mbit\"]\ntotal_streams = [2, 8]", udp).unwrap();
        let rates: Vec<u64> =
            tests(&plan).iter().map(|test| test.flows[0].bitrate.unwrap().bps()).collect();
        assert_eq!(rates, [275_000_000, 68_750_000]);
        assert_eq!(tests(&plan)[1].predict().unwrap().rate.bps(), 550_000_000);
    }

    #[test]
    fn a_total_of_a_client_that_has_its_streams_is_shared_by_them() {
        let plan = plan("total_window = [\"0.5 bdp\"]", "streams = 3").unwrap();
        assert_eq!(tests(&plan)[0].window, Some(ByteCount::from_bytes(1_250_000)));
    }

    #[test]
    fn memory_is_the_sum_of_the_windows_and_the_queue() {
        let factors = "total_window = [\"8MiB\"]\ntotal_streams = [8, 16]\nqueue = [\"20ms\"]";
        let found = plan(factors, "hosts = \"4x2\"").unwrap();
        for test in tests(&found) {
            let memory = test.memory();
            assert_eq!(memory.hosts.unwrap().bytes(), 8 << 20, "{:?}", test.window);
            assert_eq!(memory.router.bytes(), 1_500_000);
        }
        let both = plan(factors, "direction = \"both\"").unwrap();
        assert_eq!(tests(&both)[0].memory().router.bytes(), 3_000_000);
        let none = plan("streams = [1]", "").unwrap();
        assert_eq!(tests(&none)[0].memory().hosts, None);
    }

    #[test]
    fn what_cannot_be_divided_says_what_can() {
        let refused = |factors: &str, traffic: &str| plan(factors, traffic).unwrap_err();
        let hosts = "hosts = \"4x2\"";
        for (total, text) in [("6", "6"), ("2", "2"), ("516", "516"), ("0", "0"), ("1.5", "1.5")] {
            let problem = refused(&format!("total_streams = [{total}]"), hosts);
            let expected = format!("total_streams = {text} cannot be shared equally");
            assert!(problem.contains(&expected), "{problem}");
            assert!(problem.contains("a multiple of 4, 4 to 512"), "{problem}");
        }
        let problem = refused("total_window = [\"16KiB\"]\ntotal_streams = [8]", "");
        assert!(problem.contains("8 streams; it must be 24 kB to 8 GB"), "{problem}");
        let udp = "protocol = \"udp\"\nstreams = 100";
        let problem = refused("total_bitrate = [\"99bit\"]", udp);
        assert!(problem.contains("it must be 100 bit/s or more"), "{problem}");
    }

    #[test]
    fn a_total_excludes_the_same_of_each_stream_and_several_flows() {
        for (factors, traffic, expected) in [
            ("total_window = [\"1MiB\"]", "window = \"64KiB\"", "total_window is shared by all"),
            ("streams = [2]", "total_streams = 4", "streams is that of each; leave one"),
            ("total_bitrate = [\"5mbit\"]", "bitrate = \"1mbit\"", "leave one of them"),
            ("total_streams = [2]", "[flows.a]\n[flows.b]", "this test has 2 flows"),
            ("total_streams = [2]", "[flows.a]\nstreams = 2", "leave one of them"),
        ] {
            let problem = plan(factors, traffic).unwrap_err();
            assert!(problem.contains(expected), "{factors}, {traffic}: {problem}");
        }
        let problem = plan("streams = [2]", "[flows.a]\ntotal_window = \"1MiB\"").unwrap_err();
        assert!(problem.contains("total_window is not a setting of a flow"), "{problem}");
    }
}
