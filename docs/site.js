// The theme puts the button that copies a block into a <nav> of its own. Where a page has several, readers of screens
// tell them apart by their names.
new MutationObserver(() => {
  document.querySelectorAll("nav.md-code__nav").forEach((nav, index) => {
    const name = `Block ${index + 1}`;
    if (nav.ariaLabel !== name) nav.ariaLabel = name;
  });
}).observe(document.body, { childList: true, subtree: true });
