"""What if: from one trace the step time of other settings, before they are run."""
