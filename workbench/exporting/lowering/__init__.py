"""Replaces Workbench's ops in graphs and functions by calls of functions of stock ops."""
