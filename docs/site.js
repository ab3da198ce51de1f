// The theme puts the button that copies a block into a <nav> of its own. A page with several blocks would have several
// landmarks without a name, between which a reader of screens cannot tell.
new MutationObserver(() => {
  for (const nav of document.querySelectorAll("nav.md-code__nav:not([role])")) nav.setAttribute("role", "group");
}).observe(document.body, { childList: true, subtree: true });
