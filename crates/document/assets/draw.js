'use strict';
// Draws the charts. Colours of axes and text are the page's own variables, so that dark mode and print need no redrawing.
(() => {
  const root = document.documentElement;
  const charts = JSON.parse(document.getElementById('charts').textContent);
  const font = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
  const config = {
    background: null,
    font,
    view: { stroke: null },
    axis: {
      labelColor: 'var(--soft)', titleColor: 'var(--soft)', gridColor: 'var(--line)', domainColor: 'var(--faint)',
      tickColor: 'var(--faint)', titleFontWeight: 400, labelFontSize: 12, titleFontSize: 12, titlePadding: 8,
    },
    legend: { labelColor: 'var(--ink)', titleColor: 'var(--soft)', labelFontSize: 12, symbolStrokeWidth: 2.5, symbolOpacity: 1 },
    header: { labelColor: 'var(--ink)', labelFontSize: 13 },
    title: {
      color: 'var(--ink)', fontSize: 13, fontWeight: 600, offset: 8, subtitleColor: 'var(--soft)', subtitleFontSize: 12,
      subtitlePadding: 2,
    },
  };

  // Columns become the rows that Vega-Lite takes.
  const rows = (columns) => {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, at) => Object.fromEntries(names.map((name) => [name, columns[name][at]])));
  };

  const draw = async (place) => {
    const { spec, data } = charts[place.dataset.chart];
    spec.datasets = Object.fromEntries(Object.entries(data).map(([name, columns]) => [name, rows(columns)]));
    const compiled = vegaLite.compile(spec, { config }).spec;
    const view = new vega.View(vega.parse(compiled, null, { ast: true }), {
      expr: expressionInterpreter, renderer: 'svg', container: place, hover: true,
    });
    await view.runAsync();
    if (!place.querySelector('svg .mark-symbol path, svg .mark-line path, svg .mark-area path, svg .mark-rect path')) {
      throw new Error(place.dataset.chart + ' is empty');
    }
  };

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
