// Applies a stored theme choice before the first paint. A file of its own, because the content
// security policy allows no inline script; a classic script, because a module would run after the
// first paint.
try {
  const choice = localStorage.getItem('dke-theme');
  if (choice === 'light' || choice === 'dark') document.documentElement.dataset.theme = choice;
} catch {
  // Storage may be forbidden; the system's preference holds then.
}
