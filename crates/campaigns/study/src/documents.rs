//! The documents whose experiments the built-in studies repeat.

use record::{PublishedValue, StudySource};

/// A document, as far as it states what it is.
#[derive(Debug)]
pub struct Document {
    /// Its name in a plan's `[source]`.
    pub id: &'static str,
    /// The beginning of its file's name in a folder of the documents.
    pub file: &'static str,
    /// Its title; `None`: not stated, as for the others.
    title: Option<&'static str>,
    author: Option<&'static str>,
    date: Option<&'static str>,
    address: Option<&'static str>,
    /// What it is, where it states no title.
    about: &'static str,
    /// The first line of each section that is cited, and its heading as the document has it; where
    /// it has none, a description that begins with a small letter.
    pub sections: &'static [(u32, &'static str)],
}

/// All of them.
pub const DOCUMENTS: &[Document] =
    &[THROUGHPUT, NETHERLIGHT, HTTP_DOWNLOADS, UNDERSTANDING, COURSE_PROJECT];

pub(crate) const THROUGHPUT: Document = Document {
    id: "throughput-2013",
    file: "000_",
    title: Some("Measuring Network Throughput"),
    author: Some("Christian Elsen"),
    date: Some("2013-06-07"),
    address: Some("/2013/06/07/measuring-network-throughput/ (the site is not stated)"),
    about: "",
    sections: &[
        (1, "introduction"),
        (26, "Sliding window protocols"),
        (40, "Bandwidth-delay Product and buffer size"),
        (74, "Limit of TCP Windows field in the protocol header"),
        (84, "Hands-On Tests"),
        (162, "Real \"bandwidth\" tests"),
        (209, "Time to bring out the big guns: UDP"),
        (250, "UDP Test"),
        (322, "TCP Test"),
        (339, "Solutions to improve throughput"),
        (343, "WAN Optimization Controller"),
        (351, "Content Distribution Networks (CDN)"),
        (359, "UDP-based file transfer"),
    ],
};

pub(crate) const NETHERLIGHT: Document = Document {
    id: "netherlight",
    file: "001_",
    title: None,
    author: None,
    date: None,
    address: None,
    about: "TCP and UDP measurements over a lambda between SURFnet, Amsterdam, and StarLight, \
            Chicago",
    sections: &[
        (1, "hosts and method"),
        (9, "text of Figures 1 to 4 (two pairs of hosts)"),
        (19, "text of Figures 5 and 6 (UDP)"),
        (24, "text of Figures 7 to 10 (one pair)"),
        (30, "text of Figures 11 to 14 (four hosts to two)"),
        (37, "text of Figures 15 and 16 (one stream, 60 minutes)"),
        (40, "text of Figures 17 and 18 (four streams, 60 minutes)"),
    ],
};

pub(crate) const HTTP_DOWNLOADS: Document = Document {
    id: "http-downloads",
    file: "002_",
    title: Some("How to speed up long-distance HTTP file downloads by 6x"),
    author: None,
    date: None,
    address: None,
    about: "",
    sections: &[
        (1, "introduction"),
        (7, "script of the settings"),
        (16, "buffers of TCP"),
        (26, "description of the experiment"),
        (28, "Low Defaults"),
        (39, "description of the tests"),
        (71, "Results & Conclusions"),
    ],
};

pub(crate) const UNDERSTANDING: Document = Document {
    id: "understanding-2025",
    file: "003_",
    title: Some("Understanding Network Performance"),
    author: Some("Joe St Sauver"),
    date: Some("2025-06-02 (M3AAWG 64, Vancouver)"),
    address: None,
    about: "",
    sections: &[
        (1, "title"),
        (15, "Part 0. Introduction"),
        (157, "Part I. Getting A 2.5 Gbps Network Established"),
        (159, "1. Measuring Performance To Get A Starting Baseline"),
        (193, "That Was What We Hoped For/Expected..."),
        (283, "2. Upgrading Client-Side Gear for 2.5Gbps Networks"),
        (370, "3. Remaining 2.5Gbps Network Infrastructure"),
        (484, "Throughput Tested From the Mac Using Wired Ethernet and iperf3"),
        (514, "What About The Other Direction?"),
        (552, "Why Do We \"Only\" Get ~2.3 Gbps instead of A Full 2.5 Gbps?"),
        (590, "Note: Our Realized Speed Can Also Be Impacted By OTHER TRAFFIC"),
        (598, "Part II. Understanding Network Performance"),
        (617, "4. Latency: The Bandwidth Delay Problem"),
        (631, "Finding Round Trip Latency With Ping: Oregon to a Random Site"),
        (652, "Going Coast-to-Coast Involves MORE Latency"),
        (709, "Going From the West Coast of the U.S. To A Site In Europe"),
        (795, "Going Even Further: Darwin University, Northern Territory, AU"),
        (847, "An Aside: Potential Problems With Using Ping To Estimate Latency"),
        (893, "Exactly How Much Room Do We Need To Hold Traffic In Flight?"),
        (912, "Sizing Systems for the Required Bandwidth Delay Product"),
        (925, "Macs: Will \"Auto-Tune\" (But Only Up To A Point)"),
        (966, "Macs: Network Link Conditioner"),
        (990, "With An Extra 200 msec of Synthetic Latency"),
        (1022, "Linux: Like Macs, Linux Will Also \"Auto-Tune\" (Up To A Point)"),
        (1045, "Linux: Temporarily Increasing Buffer Limits"),
        (1097, "Windows 11: May Be Adequately \"Self-Tuned\" Out-of-the-box"),
        (1126, "5. Congestion Control Algorithms (CCA)"),
        (1144, "The Sawtooth Throughput Graph Implied by AIMD"),
        (1152, "\"CUBIC For Fast and Long-Distance Networks\" (RFC 9438)"),
        (1173, "Aside: Both CUBIC and BBR Leverage ECN"),
        (1220, "CUBIC's Popular BUT IT Can Have Issues in Loss-Prone Environments"),
        (1232, "The Case FOR BBR In One Graph..."),
        (1239, "The Case AGAINST BBR In One Slide..."),
        (1256, "So Why Hasn't BBR Become the New Default (Displacing Cubic)?"),
        (1334, "Aside: \"What About Satellite Latencies?\""),
        (1340, "6. RFC 1323 Window Scaling"),
        (1463, "7. \"What About Bufferbloat?\""),
        (1479, "We've **NOT** Been Working to \"Avoid Jitter and Lag\""),
        (1495, "Preventing Bufferbloat Symptoms with `FQ_codel`"),
        (1515, "8. Using tcpdump and Wireshark"),
        (1781, "It's Not All \"Just About Graphs\""),
        (1938, "Part IV. Glossary"),
    ],
};

pub(crate) const COURSE_PROJECT: Document = Document {
    id: "emulab-course",
    file: "004_",
    title: None,
    author: None,
    date: None,
    address: None,
    about: "a paper on a course project, TCP and UDT on Emulab",
    sections: &[
        (1, "Abstract"),
        (21, "I. INTRODUCTION"),
        (72, "II. BACKGROUND"),
        (189, "III. EVALUATION ENVIRONMENTS"),
        (208, "IV. EXPERIMENT RESULTS"),
        (287, "V. CONCLUDING REMARKS"),
    ],
};

impl Document {
    /// The document of that name.
    pub(crate) fn named(id: &str) -> Option<&'static Document> {
        DOCUMENTS.iter().find(|document| document.id == id)
    }

    /// Title, author, date and address, without values.
    #[must_use]
    pub fn source(&self) -> StudySource {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        StudySource {
            title: owned(self.title),
            author: owned(self.author),
            date: owned(self.date),
            address: owned(self.address),
            about: self.about.to_owned(),
            published: Vec::new(),
            assumed: Vec::new(),
        }
    }

    /// A value at a line of it.
    pub(crate) fn value(&self, number: &str, unit: &str, line: u32) -> PublishedValue {
        let before = self.sections.iter().rev().find(|(first, _)| *first <= line);
        let heading = before.map_or("", |(_, heading)| heading);
        PublishedValue {
            number: number.to_owned(),
            unit: unit.to_owned(),
            line,
            section: heading.replace(['*', '`'], ""),
        }
    }
}
