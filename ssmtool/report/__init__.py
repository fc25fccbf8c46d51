"""Rendering: dataclasses in, console text or JSON out. The only room that knows rich."""
