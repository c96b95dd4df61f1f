"""Where values go: sinks, the terms they are sums of, and the formulas with their places."""
