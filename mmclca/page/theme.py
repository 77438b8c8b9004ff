# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fonts, colours and style; nothing is fetched from elsewhere."""

import gradio as gr

THEME = gr.themes.Default(
    primary_hue='emerald',
    neutral_hue='slate',
    font=['system-ui', '-apple-system', 'Segoe UI', 'Roboto', 'sans-serif'],
    font_mono=['ui-monospace', 'Consolas', 'monospace'],
)
CSS = """
.gradio-container { max-width: 1240px !important; margin: 0 auto; }
#heading h1 { margin: 0.2em 0 0.1em; font-size: 1.7em; }
#heading p { margin: 0; color: var(--body-text-color-subdued); }
#model { margin-top: -12px; }
#model .html-container { padding: 0; }
#classes h3, #survivors h3, #costs h3 { margin: 0 0 8px; font-size: 1em; }
#costs { min-height: 150px; }
#method .wrap { flex-direction: column; gap: 4px; }
#method label { padding: 5px 10px; font-size: 0.85em; }
.class { display: grid; grid-template-columns: minmax(8rem, 30%) 1fr 5.5rem;
  gap: 12px; align-items: center; padding: 3px 0; }
.class:first-of-type { font-size: 1.25em; font-weight: 600; }
.class .track { height: 12px; margin: 0; }
.class:first-of-type .track span { background: #009e73; }
#classes table { margin-top: 10px; font-size: 0.85em; text-align: left; }
#classes td, #classes th { padding-right: 16px; }
.steps { display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); }
.steps figure { margin: 0; max-width: 260px; }
.steps img { width: 100%; display: block; border-radius: 6px;
  border: 1px solid var(--border-color-primary); }
.steps figcaption { font-size: 0.85em; line-height: 1.35; margin-top: 6px; }
.track { display: block; height: 6px; margin-top: 5px; border-radius: 3px;
  background: var(--border-color-primary); overflow: hidden; }
.track span { display: block; height: 100%; background: #0072b2; }
.cost + .cost .track span { background: #8a8f98; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 0.85em;
  margin: 10px 0 4px; }
.entry { display: inline-flex; align-items: center; gap: 6px; }
.swatch { width: 16px; height: 16px; border-radius: 3px;
  display: inline-block; box-sizing: border-box; border: 2px solid; }
.note { font-size: 0.8em; margin: 4px 0 0;
  color: var(--body-text-color-subdued); }
.costs { display: grid; gap: 20px; font-size: 0.9em;
  grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); }
.cost { display: grid; grid-template-columns: 10em 1fr 7em; gap: 10px;
  align-items: center; margin-top: 4px; }
.cost .track { height: 12px; margin: 0; }
.number { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.problem { border-left: 4px solid #d55e00; padding: 10px 14px;
  border-radius: 4px; background: rgba(213, 94, 0, 0.12); }
"""
