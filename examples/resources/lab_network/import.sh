terraform import lab_network.net labnet
