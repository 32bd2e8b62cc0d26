mod cases;
mod files;
mod scraped;
