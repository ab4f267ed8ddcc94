"""A served model: latency against load, requests over time, findings and the answer."""
