// One TCP flow between two hosts in ns-3, for scripts/ns3-peer: a link with a drop-tail queue,
// or one that marks above a length, and losses listed by data packet.
//
// Prints one JSON document: payload received after --from, the time-weighted mean of the
// congestion window after it, packets, seconds of a core and, with --sample, the window over
// time.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <list>
#include <sstream>
#include <string>

using namespace ns3;

namespace {

constexpr uint32_t kMss = 1448;
// The SYN and the acknowledgement that ends the handshake.
constexpr uint32_t kHandshake = 2;
constexpr uint16_t kPort = 5201;

// What is measured, from `from` seconds on.
struct Measured {
  double from = 0.0;
  uint64_t received = 0;
  uint64_t received_late = 0;
  double window = 0.0;
  double window_since = 0.0;
  double window_seconds = 0.0;
};

Measured g_measured;

double Now() { return Simulator::Now().GetSeconds(); }

void OnReceived(Ptr<const Packet> packet, const Address&) {
  g_measured.received += packet->GetSize();
  if (Now() >= g_measured.from) g_measured.received_late += packet->GetSize();
}

// Adds the time for which the window was what it is.
void CloseWindow() {
  const double begin = std::max(g_measured.window_since, g_measured.from);
  const double now = Now();
  if (now > begin) g_measured.window_seconds += (now - begin) * g_measured.window;
  g_measured.window_since = now;
}

void OnWindow(uint32_t, uint32_t bytes) {
  CloseWindow();
  g_measured.window = static_cast<double>(bytes) / kMss;
}

std::string g_samples;

void Sample(double every) {
  char text[64];
  std::snprintf(text, sizeof text, "%s[%.2f, %.2f]", g_samples.empty() ? "" : ", ", Now(),
                g_measured.window);
  g_samples += text;
  Simulator::Schedule(Seconds(every), &Sample, every);
}

void ConnectTraces() {
  Config::ConnectWithoutContext(
      "/NodeList/0/$ns3::TcpL4Protocol/SocketList/0/CongestionWindow", MakeCallback(&OnWindow));
}

double CoreSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  // Before the command line, on which --ns3::TYPE::ATTRIBUTE=VALUE may set others.
  Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                     TypeIdValue(TcpPrrRecovery::GetTypeId()));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kMss));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(256 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(256 << 20));
  Config::SetDefault("ns3::TcpWestwood::ProtocolType", EnumValue(TcpWestwood::WESTWOODPLUS));

  std::string control = "ns3::TcpCubic";
  double mbit = 100.0;
  double rtt_ms = 50.0;
  double seconds = 20.0;
  uint32_t queue = 416;
  uint32_t mark = 0;
  std::string aqm;
  std::string drops;
  double sample = 0.0;
  CommandLine command;
  command.AddValue("control", "congestion control, by its TypeId", control);
  command.AddValue("mbit", "rate of the link, Mbit/s", mbit);
  command.AddValue("rtt", "round-trip time, ms", rtt_ms);
  command.AddValue("seconds", "duration, s", seconds);
  command.AddValue("from", "what is before is not measured, s", g_measured.from);
  command.AddValue("queue", "limit of the queue, packets", queue);
  command.AddValue("mark", "mark above this length, packets; 0: never", mark);
  command.AddValue("aqm", "a queue discipline instead, by its TypeId", aqm);
  command.AddValue("drops", "data packets to lose, from 1, in ascending order: 3+17", drops);
  command.AddValue("sample", "interval of samples of the window, s; 0: none", sample);
  command.Parse(argc, argv);

  TypeId type;
  if (!TypeId::LookupByNameFailSafe(control, &type)) {
    std::fprintf(stderr, "ns3.cc: no congestion control %s\n", control.c_str());
    return 2;
  }
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(type));
  if (mark > 0) Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));

  NodeContainer hosts;
  hosts.Create(2);
  const bool discipline = mark > 0 || !aqm.empty();
  PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(mbit * 1e6))));
  link.SetChannelAttribute("Delay", TimeValue(Seconds(rtt_ms / 2e3)));
  // A queue discipline needs a short queue in the device, or none forms above it.
  link.SetQueue("ns3::DropTailQueue", "MaxSize",
                StringValue((discipline ? "1" : std::to_string(queue)) + std::string("p")));
  const NetDeviceContainer devices = link.Install(hosts);
  InternetStackHelper internet;
  internet.InstallAll();
  if (discipline) {
    TrafficControlHelper above;
    if (aqm.empty()) {
      // RED whose thresholds meet and whose average is the present length: a step.
      above.SetRootQueueDisc(
          "ns3::RedQueueDisc", "MinTh", DoubleValue(mark), "MaxTh", DoubleValue(mark), "QW",
          DoubleValue(1.0), "UseEcn", BooleanValue(true), "UseHardDrop", BooleanValue(false),
          "MeanPktSize", UintegerValue(1500), "MaxSize",
          QueueSizeValue(QueueSize(std::to_string(queue) + "p")), "LinkBandwidth",
          DataRateValue(DataRate(static_cast<uint64_t>(mbit * 1e6))), "LinkDelay",
          TimeValue(Seconds(rtt_ms / 2e3)));
    } else {
      above.SetRootQueueDisc(aqm);
    }
    above.Install(devices.Get(0));
  }
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  const Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
  // Assign gives devices without a discipline one of their own.
  if (!discipline) TrafficControlHelper().Uninstall(devices);

  std::list<uint32_t> lost;
  std::istringstream numbers(drops);
  for (std::string number; std::getline(numbers, number, '+');) {
    // The receiver's error model counts from 0 what has passed the queue.
    lost.push_back(static_cast<uint32_t>(std::stoul(number)) - 1 + kHandshake);
  }
  if (!lost.empty()) {
    Ptr<ReceiveListErrorModel> errors = CreateObject<ReceiveListErrorModel>();
    errors->SetList(lost);
    devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
  }

  BulkSendHelper source("ns3::TcpSocketFactory",
                        InetSocketAddress(interfaces.GetAddress(1), kPort));
  source.SetAttribute("SendSize", UintegerValue(65536));
  source.Install(hosts.Get(0)).Start(Seconds(0.0));
  PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kPort));
  ApplicationContainer sinks = sink.Install(hosts.Get(1));
  sinks.Start(Seconds(0.0));
  sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&OnReceived));
  Simulator::Schedule(MicroSeconds(1), &ConnectTraces);
  if (sample > 0.0) Simulator::Schedule(Seconds(sample), &Sample, sample);

  Simulator::Stop(Seconds(seconds));
  const double begin = CoreSeconds();
  Simulator::Run();
  CloseWindow();
  const double core = CoreSeconds() - begin;
  Simulator::Destroy();

  const double measured = seconds - g_measured.from;
  std::printf(
      "{\"goodput_mbit\": %.4f, \"cwnd\": %.2f, \"packets\": %.0f, \"core_s\": %.3f, "
      "\"samples\": [%s]}\n",
      static_cast<double>(g_measured.received_late) * 8.0 / measured / 1e6,
      g_measured.window_seconds / measured, static_cast<double>(g_measured.received) / kMss, core,
      g_samples.c_str());
  return 0;
}
