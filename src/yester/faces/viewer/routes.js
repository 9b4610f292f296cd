// Every view: its address, the module that shows it, and the part of the navigation it belongs to.

export const ROUTES = [
  { path: "/", page: "/pages/now.js", section: "/" },
  { path: "/timeline", page: "/pages/timeline.js", section: "/timeline" },
  { path: "/search", page: "/pages/search.js", section: "/search" },
  { path: "/item/:id", page: "/pages/item.js", section: null }, // that of the view it was opened from
  { path: "/sessions", page: "/pages/sessions.js", section: "/sessions" },
  { path: "/session/:id", page: "/pages/session.js", section: "/sessions" },
  { path: "/file", page: "/pages/file.js", section: null }, // likewise
  { path: "/memories", page: "/pages/memories.js", section: "/memories" },
  { path: "/memory/:id", page: "/pages/memory.js", section: "/memories" },
  { path: "/review", page: "/pages/review.js", section: "/memories" },
  { path: "/shown", page: "/pages/injections.js", section: "/shown" },
  { path: "/stats", page: "/pages/stats.js", section: "/stats" },
  { path: "/projects", page: "/pages/projects.js", section: "/projects" },
  { path: "/settings", page: "/pages/settings.js", section: "/settings" },
  { path: "/doctor", page: "/pages/doctor.js", section: "/doctor" },
];

export const SECTIONS = [
  ["/", "Now"],
  ["/timeline", "Timeline"],
  ["/search", "Search"],
  ["/sessions", "Sessions"],
  ["/memories", "Memories"],
  ["/shown", "Injected"],
  ["/stats", "Statistics"],
  ["/projects", "Projects"],
  ["/settings", "Settings"],
  ["/doctor", "Doctor"],
];
