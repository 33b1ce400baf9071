"""Syntax tables: how a target language spells what a schedule placed."""
