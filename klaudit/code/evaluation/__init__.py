"""What a formula is, by its value and slope: dual numbers over the graph, compared with the theory."""
