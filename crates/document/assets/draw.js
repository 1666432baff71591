'use strict';
// Draws the charts. Colours of axes and text are the page's own variables, so that dark mode and print need no redrawing.
(() => {
  const root = document.documentElement;
  const { charts, data } = JSON.parse(document.getElementById('charts').textContent);
  const font = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
  const config = {
    background: null,
    font,
    view: { stroke: null },
    axis: {
      labelColor: 'var(--soft)', titleColor: 'var(--soft)', gridColor: 'var(--line)', domainColor: 'var(--faint)',
      tickColor: 'var(--faint)', titleFontWeight: 400, labelFontSize: 12, titleFontSize: 12, titlePadding: 8,
    },
    // Panels below each other begin at the same place.
    axisLeft: { minExtent: 34 },
    axisX: { labelOverlap: true },
  };

  // Columns become the rows that Vega-Lite takes, once for all panels that share them.
  const rows = (columns) => {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, at) => Object.fromEntries(names.map((name) => [name, columns[name][at]])));
  };
  const tables = Object.fromEntries(Object.entries(data).map(([name, all]) => [
    name, Object.entries(all).map(([table, columns]) => [table, rows(columns)]),
  ]));

  // Names that the keys have switched off, by column.
  const hidden = new Map();
  const shown = (row) => [...hidden].every(([column, names]) => !names.has(row[column]));

  // A tooltip with the columns of a point.
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  document.body.append(tip);
  const tooltip = (_, event, item, value) => {
    if (value === null || value === undefined || value === '') {
      tip.hidden = true;
      return;
    }
    const lines = typeof value === 'object' ? Object.entries(value) : [['', value]];
    tip.replaceChildren(...lines.map(([name, text]) => {
      const line = document.createElement('div');
      const label = document.createElement('span');
      label.textContent = name ? name + ' ' : '';
      line.append(label, String(text));
      return line;
    }));
    tip.hidden = false;
    const room = { x: innerWidth - tip.offsetWidth - 8, y: innerHeight - tip.offsetHeight - 8 };
    tip.style.left = Math.max(8, Math.min(event.clientX + 14, room.x)) + 'px';
    tip.style.top = Math.max(8, Math.min(event.clientY + 14, room.y)) + 'px';
  };
  addEventListener('scroll', () => { tip.hidden = true; }, { passive: true });

  const views = [];
  const draw = async (place) => {
    const { spec, data: name } = charts[place.dataset.chart];
    spec.datasets = Object.fromEntries(tables[name].map(([table, all]) => [table, all]));
    const compiled = vegaLite.compile(spec, { config }).spec;
    const view = new vega.View(vega.parse(compiled, null, { ast: true }), {
      expr: expressionInterpreter, renderer: 'svg', container: place, hover: true, tooltip,
    });
    await view.runAsync();
    const marks = ['symbol', 'line', 'area', 'rect'].map((kind) => 'svg .mark-' + kind + ' path').join(', ');
    if (!place.querySelector(marks)) {
      throw new Error(place.dataset.chart + ' is empty');
    }
    const used = new Set(compiled.data.map((table) => table.name));
    views.push([view, tables[name].filter(([table]) => used.has(table))]);
  };

  // Shows what the keys have switched on.
  const refresh = async () => {
    for (const button of document.querySelectorAll('.key button')) {
      const names = hidden.get(button.dataset.column);
      button.setAttribute('aria-pressed', String(!(names && names.has(button.dataset.name))));
    }
    for (const panel of document.querySelectorAll('.panel[data-discipline]')) {
      const names = hidden.get('discipline');
      panel.hidden = Boolean(names && names.has(panel.dataset.discipline));
    }
    for (const [view, all] of views) {
      all.forEach(([table, of]) => view.data(table, of.filter(shown)));
      await view.runAsync();
    }
  };
  const names = (column) => {
    if (!hidden.has(column)) {
      hidden.set(column, new Set());
    }
    return hidden.get(column);
  };
  const all = (column) => new Set(
    [...document.querySelectorAll('.key button')].filter((one) => one.dataset.column === column).map((one) => one.dataset.name),
  );
  document.addEventListener('click', (event) => {
    const button = event.target.closest('.key button');
    if (!button || event.detail > 1) {
      return;
    }
    const { column, name } = button.dataset;
    const off = names(column);
    if (off.has(name)) {
      off.delete(name);
    } else {
      off.add(name);
    }
    // Nothing at all is no view.
    if (off.size === all(column).size) {
      off.clear();
    }
    refresh();
  });
  document.addEventListener('dblclick', (event) => {
    const button = event.target.closest('.key button');
    if (!button) {
      return;
    }
    const { column, name } = button.dataset;
    hidden.set(column, all(column));
    names(column).delete(name);
    refresh();
  });

  const places = [...document.querySelectorAll('.plot')];
  let drawn = 0;
  const tell = () => { root.dataset.charts = drawn + '/' + places.length; };
  tell();
  (async () => {
    for (const place of places) {
      try {
        await draw(place);
        drawn += 1;
      } catch (error) {
        place.textContent = 'This chart could not be drawn: ' + error.message;
        console.error(place.dataset.chart + ': ' + error);
      }
      tell();
    }
    root.dataset.requests = performance.getEntriesByType('resource').map((entry) => entry.name).join(' ');
    root.dataset.done = 'yes';
  })();
})();
