"""Calculations on events and tallies: tables in, tables out."""
