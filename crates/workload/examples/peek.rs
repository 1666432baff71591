fn main() {
    let path = std::env::args().nth(1).unwrap();
    let mut e = workload::Extraction::default();
    for p in capture::Reader::open(&path).unwrap() {
        if let Ok(p) = p {
            e.packet(&p);
        }
    }
    let (local, why) = e.guess().unwrap();
    println!("{local}: {why}");
    let (w, seen) = e.finish(&local);
    println!("{seen:#?}");
    w.write(std::io::stdout()).unwrap();
}
