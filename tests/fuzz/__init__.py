"""Random recommender programs, run by stock TensorFlow and rewritten: both must train alike.

`make fuzz SEEDS=2000 KIND=fused` runs as many. A seed draws a `Program`, a plain value; its graph
is built once and runs in two sessions. Only public names of Workbench are used.
"""
