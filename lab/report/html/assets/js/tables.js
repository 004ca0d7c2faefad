// ---- tables sort by a click on a heading.
document.querySelectorAll('table:has(td[data-value])').forEach(table => {
  table.querySelectorAll('thead th').forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button'; button.className = 'sort';
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') !== 'descending';
      table.querySelectorAll('th[aria-sort]').forEach(h => h.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const key = row => row.children[column].dataset.value;
      const compare = (a, b) => {
        const x = key(a), y = key(b);
        if (x !== undefined && y !== undefined) return (y - x) * (down ? 1 : -1);
        if (x !== undefined || y !== undefined) return x === undefined ? 1 : -1;
        return a.children[column].textContent.localeCompare(b.children[column].textContent) * (down ? -1 : 1);
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(compare));
    });
  });
});

