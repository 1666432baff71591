'use strict';
// Widths of texts do not depend on the fonts of the machine: a character has the mean width of Helvetica.
HTMLCanvasElement.prototype.getContext = () => ({
  font: '11px',
  measureText(text) {
    return { width: 0.55 * parseFloat((/([\d.]+)px/.exec(this.font) || ['', '11'])[1]) * String(text).length };
  },
});
