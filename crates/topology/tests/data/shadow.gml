graph [
  directed 1
  node [ id 0 host_bandwidth_up "100 Mbit" host_bandwidth_down "1 Gbit" ip_address "11.0.0.1" ]
  node [ id 1 label "far" host_bandwidth_up "10 Mbit" host_bandwidth_down "10 Mbit" ]
  node [ id 2 host_bandwidth_up "10 Mbit" host_bandwidth_down "10 Mbit" ]
  edge [ source 0 target 1 latency "50 ms" jitter "2 ms" packet_loss 0.01 ]
  edge [ source 1 target 0 latency "60 ms" packet_loss 0.0 ]
  edge [ source 1 target 2 latency "5 ms" packet_loss 0 ]
  edge [ source 0 target 0 latency "1 ms" packet_loss 0 ]
]
