"""Writes models as SavedModels of stock ops that load where Workbench is not installed."""
