'use strict';
// What goes wrong on this page is kept where a test can read it.
(() => {
  const root = document.documentElement;
  const wrong = [];
  const complain = (text) => {
    wrong.push(String(text));
    root.dataset.wrong = JSON.stringify(wrong);
  };
  window.addEventListener('error', (event) => complain(event.message));
  window.addEventListener('unhandledrejection', (event) => complain(event.reason));
  document.addEventListener('securitypolicyviolation', (event) => complain('blocked: ' + event.blockedURI));
  for (const level of ['error', 'warn']) {
    const say = console[level].bind(console);
    console[level] = (...words) => {
      complain(words.join(' '));
      say(...words);
    };
  }
})();
