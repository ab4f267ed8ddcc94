"""The kinds of findings: each looks at a step account and claims what it would save, in ns."""
