# A graph of the same kind in GML.
Creator "by hand"
graph [
  directed 0
  Network "M&#252;nz &amp; Co"
  node [ id 0 label "K&#246;ln" Latitude 0.0 Longitude 0.0 graphics [ x 1 y 2 ] ]
  node [ id 1 label "1" Latitude 0.0 Longitude 90.0 ]
  edge [ source 0 target 1 latency "7 ms" LinkSpeed "34" LinkSpeedUnits "M" ]
]
