// What the theme leaves out for readers of screens and keyboards.
function amend() {
  // The button that copies a block stands in a <nav> of its own: several of them are told apart by their names.
  document.querySelectorAll("nav.md-code__nav").forEach((nav, index) => {
    const name = `Block ${index + 1}`;
    if (nav.ariaLabel !== name) nav.ariaLabel = name;
  });
  // Entries of one name in the list of contents, such as members of several classes, are told apart by their number.
  const seen = new Map();
  document.querySelectorAll("nav.md-nav[aria-label]").forEach((nav) => {
    const name = nav.dataset.name ?? (nav.dataset.name = nav.ariaLabel);
    const key = name.toLowerCase(); // a module and its class are one name to listeners
    const times = (seen.get(key) ?? 0) + 1;
    seen.set(key, times);
    const label = times > 1 ? `${name} ${times}` : name;
    if (nav.ariaLabel !== label) nav.ariaLabel = label;
  });
  // A table or picture that is wider than the page scrolls, so that keys must reach it.
  const scrolling = ".md-typeset__scrollwrap, .md-typeset__table > table, .md-typeset p:has(> img)";
  for (const wrap of document.querySelectorAll(scrolling)) {
    if (wrap.scrollWidth > wrap.clientWidth) wrap.tabIndex = 0;
    else wrap.removeAttribute("tabindex");
  }
}

new MutationObserver(amend).observe(document.body, { childList: true, subtree: true });
window.addEventListener("resize", amend);
window.addEventListener("load", amend); // pictures have their sizes
