'use strict';
// A button copies the commands beside it. Without this script there are no buttons.
(() => {
  const byHand = (text) => {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  };
  for (const button of document.querySelectorAll('button.copy')) {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener('click', async () => {
      const text = button.parentElement.querySelector('pre').textContent + '\n';
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        // A page that is opened as a file may not use the clipboard directly.
        byHand(text);
      }
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  }
})();
