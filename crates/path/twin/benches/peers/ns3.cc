// One CUBIC flow over 100 Mbit/s x 50 ms with a drop-tail queue of one BDP for 20 s, as the
// benchmark's second line has it, in ns-3: prints data packets a second of wall time.
//
// scripts/ns3-bench builds and runs it beside the twin.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

using namespace ns3;

namespace {

constexpr double kSeconds = 20.0;
constexpr uint32_t kMss = 1448;
constexpr uint32_t kBdpPackets = 416;

uint64_t g_received = 0;

void Count(Ptr<const Packet> packet, const Address&) { g_received += packet->GetSize(); }

}  // namespace

int main() {
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kMss));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));

  NodeContainer hosts;
  hosts.Create(2);
  NodeContainer routers;
  routers.Create(2);

  PointToPointHelper access;
  access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
  access.SetChannelAttribute("Delay", StringValue("10us"));
  access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("10000p"));
  PointToPointHelper bottleneck;
  bottleneck.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
  bottleneck.SetChannelAttribute("Delay", StringValue("24980us"));
  bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize",
                      StringValue(std::to_string(kBdpPackets) + "p"));

  const NetDeviceContainer left = access.Install(hosts.Get(0), routers.Get(0));
  const NetDeviceContainer middle = bottleneck.Install(routers.Get(0), routers.Get(1));
  const NetDeviceContainer right = access.Install(routers.Get(1), hosts.Get(1));

  InternetStackHelper internet;
  internet.InstallAll();
  Ipv4AddressHelper addresses;
  addresses.SetBase("10.0.0.0", "255.255.255.0");
  Ipv4InterfaceContainer server;
  for (const NetDeviceContainer& devices : {left, middle, right}) {
    server = addresses.Assign(devices);
    addresses.NewNetwork();
    // The queue of the device is the bottleneck's, not a queue discipline above it.
    TrafficControlHelper().Uninstall(devices);
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  constexpr uint16_t kPort = 5201;
  BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(server.GetAddress(1), kPort));
  source.SetAttribute("SendSize", UintegerValue(65536));
  source.Install(hosts.Get(0)).Start(Seconds(0.0));
  PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kPort));
  ApplicationContainer sinks = sink.Install(hosts.Get(1));
  sinks.Start(Seconds(0.0));
  sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Count));

  Simulator::Stop(Seconds(kSeconds));
  const auto begin = std::chrono::steady_clock::now();
  Simulator::Run();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  Simulator::Destroy();

  const double packets = static_cast<double>(g_received) / kMss;
  std::printf("ns-3: %.0f packets, %.3f s, %.0f packets/s, goodput %.1f Mbit/s\n", packets,
              wall.count(), packets / wall.count(), packets * kMss * 8.0 / kSeconds / 1e6);
  return 0;
}
