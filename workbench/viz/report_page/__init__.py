"""The page of a report: the news, what to do, why, and an appendix of folds."""
