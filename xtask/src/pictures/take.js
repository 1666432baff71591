'use strict';
// Replaces the page by the text of one figure as SVG, when all charts are drawn. `wanted` is the beginning of its title.
(function wait() {
  const root = document.documentElement;
  if (root.dataset.done !== 'yes') {
    setTimeout(wait, 20);
    return;
  }
  const style = getComputedStyle(root);
  const colour = (name) => style.getPropertyValue(name).trim();
  const escaped = (text) => text.trim().replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  const width = (text, size) => 0.55 * size * text.length;
  const write = (text) => {
    root.innerHTML = '<head></head><body><pre id="taken"></pre></body>';
    document.querySelector('pre').textContent = text;
  };
  const figures = [...document.querySelectorAll('figure')];
  const title = (figure) => figure.querySelector('h3').firstChild.textContent.trim();
  const figure = figures.find((one) => title(one).startsWith(wanted));
  if (!figure) {
    write('figures: ' + figures.map(title).join('; '));
    return;
  }
  const panels = [...figure.querySelectorAll('.panel')].filter((panel) => panel.querySelector('.plot svg'));
  if (!panels.length) {
    write('figures: ' + title(figure) + ' has no plot');
    return;
  }
  const edge = 14;
  const parts = [];
  let [right, top] = [0, edge];

  // The keys: those of the figure; and that of the page, if neither a key nor the panels name the disciplines.
  const line = 18;
  const named = figure.querySelector('.key [data-column="discipline"], .panel[data-discipline]');
  const ofPage = [...document.querySelectorAll('.key')].filter((key) => !key.closest('figure'));
  const keys = [...figure.querySelectorAll('.key'), ...(named ? [] : ofPage)];
  for (const key of keys) {
    let left = edge;
    for (const button of key.querySelectorAll('button')) {
      const name = (button.querySelector('b') || button).textContent.trim();
      const sample = button.querySelector('svg');
      const needs = (sample ? 42 : 0) + width(name, 12) + 18;
      if (left > edge && left + needs > innerWidth - edge) {
        [left, top] = [edge, top + line];
      }
      if (sample) {
        const drawn = sample.querySelector('line');
        const dash = drawn.getAttribute('stroke-dasharray');
        parts.push('<path d="M' + left + ' ' + (top + 8) + 'h34" stroke="' + drawn.getAttribute('stroke') + '" stroke-width="' +
          drawn.getAttribute('stroke-width') + '"' + (dash ? ' stroke-dasharray="' + dash + '"' : '') + '/>');
      }
      parts.push('<text x="' + (left + (sample ? 42 : 0)) + '" y="' + (top + 12) + '" font-size="12" fill="' + colour('--ink') + '">' +
        escaped(name) + '</text>');
      left += needs;
      right = Math.max(right, left);
    }
    top += line;
  }
  top += keys.length ? 10 : 0;

  const columns = Number(figure.querySelector('.panels').style.getPropertyValue('--columns'));
  const gap = 24;
  let [left, lowest] = [edge, top];
  panels.forEach((panel, at) => {
    if (at > 0 && at % columns === 0) {
      [left, top] = [edge, lowest + 14];
    }
    let below = top;
    const heading = panel.querySelector('h4');
    if (heading) {
      const small = heading.querySelector('small');
      const texts = [[heading.firstChild.textContent, 13, 'font-weight="600" fill="' + colour('--ink') + '"']];
      if (small) {
        texts.push([small.textContent, 11.5, 'fill="' + colour('--soft') + '"']);
      }
      for (const [text, size, look] of texts) {
        below += 17;
        parts.push('<text x="' + left + '" y="' + (below - 4) + '" font-size="' + size + '" ' + look + '>' + escaped(text) + '</text>');
      }
    }
    const svg = panel.querySelector('.plot svg').cloneNode(true);
    const size = { width: Number(svg.getAttribute('width')), height: Number(svg.getAttribute('height')) };
    for (const one of [svg, ...svg.querySelectorAll('*')]) {
      [...one.attributes].map((attribute) => attribute.name)
        .filter((name) => /^(aria-|role$|class$|cursor$|style$|xmlns)/.test(name))
        .forEach((name) => {
          // A fill or a pointer may be a style. Other programs than browsers know attributes only.
          if (name === 'style') {
            one.getAttribute(name).split(';').map((rule) => rule.split(':').map((word) => word.trim()))
              .filter(([rule]) => /^(fill|stroke|opacity|display)/.test(rule))
              .forEach(([rule, value]) => one.setAttribute(rule, value));
          }
          one.removeAttribute(name);
        });
    }
    svg.setAttribute('x', left);
    svg.setAttribute('y', below);
    parts.push(new XMLSerializer().serializeToString(svg).replace(' xmlns="http://www.w3.org/2000/svg"', '')
      .replace(/(id="|url\(#)/g, '$1p' + at + '-'));
    lowest = Math.max(lowest, below + size.height);
    left += size.width + gap;
    right = Math.max(right, left - gap);
  });
  const [wide, high] = [Math.ceil(right + edge), Math.ceil(lowest + edge)];
  write(('<svg xmlns="http://www.w3.org/2000/svg" width="' + wide + '" height="' + high + '" viewBox="0 0 ' + wide + ' ' + high +
    '" font-family="Helvetica, Arial, sans-serif">\n<rect width="100%" height="100%" fill="' + colour('--paper') + '"/>\n' +
    parts.join('\n') + '\n</svg>\n')
    .replace(/var\((--[a-z]+)\)/g, (_, name) => colour(name))
    .replace(/-?\d+\.\d{2,}/g, (number) => {
      const parts = Math.abs(number) < 2 ? 100 : 10;
      return String(Math.round(Number(number) * parts) / parts);
    }));
})();
